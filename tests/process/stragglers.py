# SPDX-License-Identifier: Apache-2.0
"""Workers that pause, or are slow: shared by the tests of them."""

import json

from tests.process import cluster

# Small next to the steps: only the waiting of members for each other matters.
PROGRAM = [cluster.SYNTHETIC, "--tensors", 4, "--tensor-kib", 64]


class StragglersTest(cluster.ProcessTest):
    def start_workers(self, groups, workers, arguments, scheduler_options=(), silence_min="30s"):
        """Starts training programs, by rank. None is declared dead before `silence_min`."""
        self.cluster = cluster.Cluster(
            self, groups=groups, workers=workers,
            scheduler_options=["--silence-min", silence_min, *scheduler_options])
        return [self.start(f"worker-{rank}", [*PROGRAM, *arguments],
                           self.cluster.environment(rank))
                for rank in range(groups * workers)]

    def result(self, workers):
        """Returns the result of a run, which must succeed."""
        for worker in workers:
            self.assertEqual(0, worker.exit_code(120), worker)
        self.cluster.stop()
        [line] = [line for line in workers[0].lines("stdout") if line.startswith("result ")]
        return json.loads(line.removeprefix("result "))
