# SPDX-License-Identifier: Apache-2.0
"""One scheduler process and more nodes than any other test starts, each over its own connection."""

from tests import report
from tests.process import cluster, control_plane

# More than the calls of strangers that the scheduler takes from one host. A busy machine is late.
_SIZE = control_plane.size_of(servers=20, groups=5, workers_per_group=60, silence_min="5s")
_SILENT = 15


class ControlPlaneTest(cluster.ProcessTest):
    def test_carries_hundreds_of_nodes(self):
        run = control_plane.Run(self, _SIZE, silent=_SILENT, seconds=8)
        figures = run.figures()
        registered, beaten, silenced = (figures[name] for name in (
            "registered", "beaten", "silenced"))
        self.assertEqual((run.nodes, run.nodes), (registered["nodes"], registered["connections"]))
        self.assertGreater(beaten["replies"], run.nodes)
        # The scheduler knows each node that it has registered.
        self.assertEqual(0, run.scheduler.count("watches of callers"), run.scheduler)
        self.assertEqual((_SILENT, 0), (silenced["silent"], silenced["falsely_dead"]))

    def test_keeps_all_of_them_when_the_scheduler_restarts(self):
        # For longer than the restarted scheduler waits for the first heartbeats.
        run = control_plane.Run(self, _SIZE, silent=0, seconds=18)
        run.await_phase("beats")
        run.restart_scheduler()
        beaten = run.await_phase("beaten")
        run.await_phase("done")
        self.assertGreater(beaten["replies"], 5 * run.nodes)
        self.assertEqual(0, run.scheduler.count(" dead: "), run.scheduler)


if __name__ == "__main__":
    report.main()
