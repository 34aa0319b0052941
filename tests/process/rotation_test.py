# SPDX-License-Identifier: Apache-2.0
"""All keys of a job are replaced while clients and a group train: no push fails, none is lost.

After each step of the rotation the scheduler is killed and comes back, so that every process makes
a new connection with the files that it has by then, and a server is replaced, whose successor draws
a new key for the data plane. A step that is left out, or that comes too early, cuts processes off.
"""

import json
import os
import time

from tests import report
from tests.process import chains, cluster, ledger, program

_SERVERS = 2
_WORKERS = 2
_ROLES = ("scheduler", "server", "worker", "client", "viewer", "admin")


class RotationTest(cluster.ProcessTest):
    def setUp(self):
        super().setUp()
        self.tls = cluster.certificates(self)
        self.authority = os.path.join(self.folder, "ca")
        self.running = cluster.Cluster(
            self, servers=_SERVERS, workers=_WORKERS, tls=self.tls,
            scheduler_options=["--log-file", os.path.join(self.folder, "decisions")],
            server_options=["--transport", "tcp"])
        self.producers = [
            ledger.Producer(self, self.running, contract, slot, rows=rows,
                            options=["--pause", "0s"])
            for contract, slot, rows in (("async", 0, False), ("async", 1, True),
                                         ("buffered:2", 0, False), ("buffered:2", 1, False))]
        self.workers = [self.start(f"ledger_worker {rank}", [ledger.WORKER, "--pause", "0s"],
                                   {**self.running.environment(rank), "COVEY_TRANSPORT": "tcp"})
                        for rank in range(_WORKERS)]
        self.progress("at the beginning")

    def certificates(self, *words):
        run = self.run_to_end("covey certificates", [
            cluster.COVEY, "certificates", *words, "-o", "json"])
        self.assertEqual(0, run.code, run)
        return json.loads("".join(run.lines("stdout")))

    def folders(self):
        return [os.path.join(self.tls, role) for role in _ROLES]

    def keys(self):
        """The private and the public half of each key that a file or the view holds."""
        found = {}
        for folder in self.folders():
            for name in ("node.key", "node.crt"):
                with open(os.path.join(folder, name), encoding="ascii") as file:
                    found[folder, name] = file.read()
        for node in cluster.nodes(self.running.status(), "SERVER"):
            found[node["name"], "data key"] = node["data_key"]
        return found

    def progress(self, what):
        """Everybody trains on; a process whose push has failed has ended."""
        for producer in self.producers:
            producer.await_durable(16, f"durable pushes {what}")
        steps = [worker.count('"event":"step"') for worker in self.workers]
        program.await_true(
            lambda: all(worker.count('"event":"step"') > before + 3 or not worker.running()
                        for worker, before in zip(self.workers, steps)), f"steps {what}")
        for worker in self.workers:
            self.assertTrue(worker.running(), worker)

    def connect_again(self, what):
        """Every process makes a new connection to the scheduler, and the scheduler hears them."""
        self.running.scheduler.kill()
        self.running.restart_scheduler()
        restarted = time.monotonic()

        def heard(status):
            # Until its first heartbeat a node counts as silent since the restart.
            passed_ms = (time.monotonic() - restarted) * 1000
            silences = {entry["node"]: int(entry.get("silent_ms", 0)) for entry in status["nodes"]}
            alive = [node["id"] for node in status["view"]["nodes"] if node["state"] == "ALIVE"]
            return (len(alive) == _SERVERS + _WORKERS + len(self.producers)
                    and all(silences[node] + 200 < passed_ms for node in alive))

        self.running.await_status(heard, f"heartbeats of all nodes {what}")
        self.progress(f"after the scheduler came back {what}")

    def replace_server(self, rank, what):
        chains.await_whole(self.running)
        self.running.servers[rank].kill()
        self.running.start_server(rank)
        chains.await_whole(self.running)
        self.progress(f"with a new server {what}")

    def rotate(self, step):
        """Hosts get their folders one after the other: the scheduler's first."""
        scheduler, *others = self.folders()
        self.certificates("rotate", self.authority, "--step", step, scheduler)
        self.connect_again(f"when the scheduler alone has made --step {step}")
        made = self.certificates("rotate", self.authority, "--step", step, *others)
        self.connect_again(f"after --step {step}")
        return made

    def test_no_push_fails_while_all_keys_are_replaced(self):
        before = self.keys()
        [old] = [root["serial"] for root in self.certificates("show", self.authority)["roots"]]
        self.rotate("add")
        self.rotate("use")
        self.replace_server(0, "under both roots")
        [new] = [root["serial"] for root in self.rotate("remove")["roots"]]
        self.assertNotEqual(old, new)
        self.replace_server(1, "under the new root")
        self.certificates("issue", self.authority, "--every-role", "--job", cluster.JOB,
                          "--out", self.tls)
        self.connect_again("with newly issued certificates")
        after = self.keys()
        self.assertEqual(before.keys(), after.keys())
        self.assertEqual([], [key for key in before if before[key] == after[key]])
        ledger.stop(self, self.running, self.producers)
        account = ledger.audit(self, self.running, self.producers)
        print(account, flush=True)
        self.assertEqual([], account.deviations)
        # No producer was killed, so every push is certain.
        self.assertEqual(0, account.uncertain)
        self.assertGreater(account.certain, 0)
        for worker in self.workers:
            self.assertTrue(worker.running(), worker)
        self.assertEqual([0] * _SERVERS, cluster.malformed(self.running.status()))


if __name__ == "__main__":
    report.main()
