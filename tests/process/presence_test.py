# SPDX-License-Identifier: Apache-2.0
"""How soon the scheduler notices departures, and nodes that return after its own restart."""

import os
import signal
import time

from tests import report
from tests.process import cluster

# The silence alone would take this long, which no test waits for.
_SILENCE = ["--silence-min", "10m"]


class PresenceTest(cluster.ProcessTest):
    def test_a_killed_server_is_dead_at_once(self):
        running = cluster.Cluster(self, servers=2, scheduler_options=_SILENCE)
        killed = time.monotonic()
        running.servers[1].signal(signal.SIGKILL)
        running.scheduler.await_line(r'"event":"decision".*server-1.*(dead|died)')
        print(f"dead after {time.monotonic() - killed:.3f} s")
        self.assertEqual(1, len(cluster.nodes(running.status(), "SERVER", "DEAD")))
        self.assertEqual(1, len(cluster.nodes(running.status(), "SERVER")))

    def test_whoever_is_alive_is_heard_again(self):
        log = os.path.join(self.folder, "decisions")
        running = cluster.Cluster(self, servers=2,
                                  scheduler_options=[*_SILENCE, "--log-file", log])
        before = running.status()
        running.scheduler.kill()
        restarted = time.monotonic()
        running.restart_scheduler()
        # The servers' reports come with their heartbeats, and are not in the log.
        after = running.await_status(
            lambda status: len(status["nodes"]) == 2
            and all(node.get("load") for node in status["nodes"]),
            "all servers heard")
        print(f"heard after {time.monotonic() - restarted:.3f} s")
        self.assertEqual([node["id"] for node in cluster.nodes(before, "SERVER")],
                         [node["id"] for node in cluster.nodes(after, "SERVER")])
        for server in running.servers:
            server.signal(signal.SIGTERM)
            self.assertEqual(0, server.exit_code())


if __name__ == "__main__":
    report.main()
