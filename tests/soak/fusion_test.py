# SPDX-License-Identifier: Apache-2.0
"""Small tensors in buckets, over links with latency."""

from tests import report
from tests.process import cluster, network, network_cluster

_TENSORS, _TENSOR_KIB = 1000, 4


class FusionTest(cluster.ProcessTest):
    """Two workers and a server, each on a machine of its own; any way takes 1 ms."""

    def result(self, *command):
        relayed = network.Relayed(self, ["outside", "worker-0", "worker-1"])
        run = network_cluster.NetworkCluster(
            self, relayed.nodes["outside"],
            [relayed.nodes[f"worker-{rank}"] for rank in range(2)], groups=1)
        relayed.fault("delay", "*", by="1ms")
        [result] = run.start(*command).finish(240)
        relayed.close()
        return result

    def step_seconds(self, steps, *options):
        result = self.result(
            cluster.SYNTHETIC, "--tensors", _TENSORS, "--tensor-kib", _TENSOR_KIB, "--steps", steps,
            "--milliseconds-per-sample", 0, "--contract", "bsp", "--update-on-members", *options)
        self.assertLess(result["distance"], 1)
        return 1 / result["steps_per_second"]

    def test_buckets_are_faster_than_tensors_one_by_one(self):
        fused = self.step_seconds(40)
        # Each travels alone, but all at the same time.
        alone = self.step_seconds(20, "--bucket-kib", 0)
        # Each is summed when the one before it has been.
        in_turn = _TENSORS * self.result(
            cluster.ALL_REDUCE, "--bytes", _TENSOR_KIB << 10, "--repetitions", 201)["seconds"]
        print(f"{_TENSORS} tensors of {_TENSOR_KIB} KiB: {fused:.4f} s per step in buckets; "
              f"{alone:.4f} s, {alone / fused:.1f} times as long, where each travels alone; "
              f"{in_turn:.4f} s, {in_turn / fused:.1f} times as long, one after another",
              flush=True)
        self.assertGreater(alone, fused)
        self.assertGreater(in_turn / fused, 20)


if __name__ == "__main__":
    report.main()
