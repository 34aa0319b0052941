"""How soon the scheduler knows who is gone, and is known again after its own restart."""

import os
import signal
import time
import unittest

from tests.process import cluster

# Silence alone would need so long, which no test waits for.
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

    def test_who_is_alive_survives_a_broken_connection(self):
        log = os.path.join(self.folder, "decisions")
        running = cluster.Cluster(self, servers=2,
                                  scheduler_options=[*_SILENCE, "--log-file", log])
        before = running.status()
        running.scheduler.kill()
        restarted = time.monotonic()
        running.restart_scheduler()
        # Whoever is heard again has little silence; the restarted scheduler has heard nobody.
        after = running.await_status(
            lambda status: len(status["nodes"]) == 2
            and all(int(node.get("silent_ms", 0)) < int(status.get("uptime_ms", 0)) - 50
                    for node in status["nodes"]),
            "all servers heard")
        print(f"heard after {time.monotonic() - restarted:.3f} s")
        self.assertEqual([node["id"] for node in cluster.nodes(before, "SERVER")],
                         [node["id"] for node in cluster.nodes(after, "SERVER")])
        running.servers[0].signal(signal.SIGKILL)
        running.scheduler.await_line(r'"event":"decision".*server-0.*(dead|died)')
        self.assertEqual(1, len(cluster.nodes(running.status(), "SERVER")))
        running.servers[1].signal(signal.SIGTERM)
        self.assertEqual(0, running.servers[1].exit_code())


if __name__ == "__main__":
    unittest.main()
