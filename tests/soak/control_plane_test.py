# SPDX-License-Identifier: Apache-2.0
"""What one scheduler process costs with more and more nodes, each over its own connection."""

import json

from tests import report
from tests.process import cluster, control_plane


class ControlPlaneTest(cluster.ProcessTest):
    def measure(self, size):
        run = control_plane.Run(self, size, silent=size.groups * size.workers_per_group // 20,
                                seconds=10, deadline=300)
        for phase, figures in run.figures().items():
            print(f"{run.nodes} nodes, {phase}: {json.dumps(figures)}", flush=True)
        self.assertEqual(0, figures["falsely_dead"])

    def test_a_hundred_nodes(self):
        self.measure(control_plane.size_of(4, 4, 24))

    def test_a_thousand_nodes(self):
        self.measure(control_plane.size_of(10, 10, 99))

    def test_three_thousand_nodes(self):
        self.measure(control_plane.size_of(30, 30, 99, heartbeat="2s", silence_min="20s"))


if __name__ == "__main__":
    report.main()
