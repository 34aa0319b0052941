# SPDX-License-Identifier: Apache-2.0
"""Rounds that wait for no other group: each pushes what it has accrued every few steps, and fetches.

This is Downpour SGD (Dean et al. 2012) with n_push = n_fetch, as the contract `local:N,quorum=1`.
"""

from tests import report
from tests.process import cluster

_GROUPS, _SERVERS, _EVERY = 4, 2, 4
_TENSORS, _STEPS = 2, 40
_PASSES, _EXAMPLES = 3, 60_000
# Of the loss of the last pass, over that of groups that push each step.
_LOSS_MAX = 1.03


def _contract(every):
    return ["--contract", f"local:{every},quorum=1"]


class DownpourTest(cluster.ProcessTest):
    def pushes(self, every):
        """That servers have answered, of four workers of one step after the other."""
        self.cluster = cluster.Cluster(self, servers=_SERVERS, groups=_GROUPS, workers=1)
        workers = [self.start(f"worker-{rank}", [
            cluster.SYNTHETIC, "--tensors", _TENSORS, "--tensor-kib", 16, "--steps", _STEPS,
            "--group-batch", 1, "--milliseconds-per-sample", 5, *_contract(every)],
            self.cluster.environment(rank)) for rank in range(_GROUPS)]
        for worker in workers:
            self.assertEqual(0, worker.exit_code(), worker)
        counts = []

        def settled(status):
            """Two heartbeats of each server later nothing has come."""
            counts.append(sum(int(entry["load"].get("pushes", 0)) for entry in status["nodes"]
                              if entry.get("load")))
            return len(counts) > 20 and counts[-1] == counts[-20]

        self.cluster.await_status(settled, "the pushes of all workers")
        self.cluster.stop()
        return counts[-1]

    def test_pushes_once_in_so_many_steps(self):
        # Besides, each worker pushes its figures once, as a client.
        each, seldom = self.pushes(1), self.pushes(_EVERY)
        whole = _GROUPS * _STEPS * _TENSORS
        self.assertEqual(whole - whole // _EVERY, each - seldom, (each, seldom))

    def loss(self, every):
        result = self.result_of(_GROUPS, 1, [
            cluster.FASHION_MNIST, "--hidden", 64, "--epochs", _PASSES, "--batch", 16,
            "--momentum", 0, "--learning-rate", 0.02, *_contract(every)],
            ["--servers", _SERVERS])
        print(f"every {every} steps: loss {result['train_loss']:.4f}, accuracy "
              f"{result['test_accuracy']}, {result['train_seconds']:.1f} s", flush=True)
        return result["train_loss"]

    def test_learns_as_well_as_with_a_push_for_each_step(self):
        self.assertLess(self.loss(_EVERY), _LOSS_MAX * self.loss(1))

    def test_a_worker_that_is_killed_costs_the_others_nothing(self):
        result = self.result_of(_GROUPS, 1, [
            cluster.FASHION_MNIST, "--hidden", 64, "--epochs", _PASSES, "--batch", 16,
            "--momentum", 0, "--learning-rate", 0.02, *_contract(_EVERY)],
            ["--servers", _SERVERS, "--kill", "worker-3@3s"])
        self.assertEqual(_PASSES * _EXAMPLES, result["samples"])
        self.assertGreater(result["test_accuracy"], 0.8)


if __name__ == "__main__":
    report.main()
