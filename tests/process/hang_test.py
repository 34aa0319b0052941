# SPDX-License-Identifier: Apache-2.0
"""One data loop of a server hangs, and the other loops of the process go on: the server leaves,
others take over, and the operator is told which loop it was."""

import re
import time

from tests import report
from tests.process import chains, cluster, ledger, outage, stopped_thread

_SERVERS = 3
# Until a push succeeds again: 2.5 s of silence, and the change of the chains.
_OUTAGE_SECONDS = 5


class HangTest(cluster.ProcessTest):
    def setUp(self):
        super().setUp()
        self.running = cluster.Cluster(self, servers=_SERVERS, loops=2)
        self.probe = outage.Probe(self, self.running)
        self.producers = [ledger.Producer(self, self.running, "async", slot,
                                          options=["--pause", "50ms"]) for slot in range(2)]
        for producer in self.producers:
            producer.await_durable(1, "first durable pushes")
        self.status = chains.await_whole(self.running)

    def _probes_by_head(self):
        """{(server rank, loop): tables of the probe whose head is there}."""
        names = {node["id"]: node["name"] for node in self.status["view"]["nodes"]}
        heads = {}
        for table in self.status["view"]["tables"]:
            name = table["spec"]["name"]
            if not name.startswith("probe/"):
                continue
            head = table["shards"][0]["chain"][0]
            rank = int(names[head["node"]].removeprefix("server-"))
            heads.setdefault((rank, head["loop"]), []).append(int(name.removeprefix("probe/")))
        return heads

    def test_shards_of_a_loop_that_hangs_move_in_time(self):
        (rank, loop), tables = sorted(self._probes_by_head().items())[0]
        server = self.running.servers[rank]
        since = time.time()
        stopped_thread.StoppedThread(server.pid, f"data-{loop}")
        outages = [self.probe.outage(table, since) for table in tables]
        print(f"outages after a hang: {outages}", flush=True)
        self.assertLessEqual(max(outages), _OUTAGE_SECONDS)
        # Its threads cannot all be waited for; it ends all the same.
        self.assertEqual(1, server.exit_code(10), server)
        [hangs] = ledger.events(server, "loop_hangs")
        self.assertEqual(f"data-{loop}", hangs["loop"])
        self.assertGreaterEqual(hangs["silent_seconds"], 2.5)
        texts = [event["text"] for event in self.running.status()["events"]]
        self.assertTrue(
            any(re.search(rf"server-{rank}\b.* left.*its loop data-{loop} hangs: silent for [2-4]\.", text)
                for text in texts), texts)
        self.running.start_server(rank)
        chains.await_whole(self.running)
        ledger.stop(self, self.running, self.producers)
        account = ledger.audit(self, self.running, self.producers)
        print(account, flush=True)
        self.assertEqual([], account.deviations)
        self.assertGreater(account.certain, 0)

    def test_a_short_stop_of_a_loop_is_no_hang(self):
        (rank, loop), tables = sorted(self._probes_by_head().items())[0]
        since = time.time()
        thread = stopped_thread.StoppedThread(self.running.servers[rank].pid, f"data-{loop}")
        self.running.await_status(lambda _: time.time() - since > 1.5, "1.5 s")
        thread.resume()
        for table in tables:
            self.probe.outage(table, since)
        for server in self.running.servers:
            self.assertTrue(server.running(), server)
        ledger.stop(self, self.running, self.producers)
        self.assertEqual([], ledger.audit(self, self.running, self.producers).deviations)


if __name__ == "__main__":
    report.main()
