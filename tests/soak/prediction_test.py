# SPDX-License-Identifier: Apache-2.0
"""A run of four processes, and what `covey simulate` predicts from the times of its steps.

Links are given as a quiet machine of two cores has them. Where other programs take the cores, the
run is slower than predicted, because its computation waits and takes none.
"""

import json
import os

from tests import report
from tests.process import cluster

_STEPS, _TENSORS, _GROUPS = 150, 4, 2


class PredictionTest(cluster.ProcessTest):
    def test_is_near_a_real_run(self):
        trace = os.path.join(self.folder, "trace")
        result = self.result_of(_GROUPS, 2, [
            cluster.SYNTHETIC, "--tensors", _TENSORS, "--tensor-kib", 1024, "--group-batch", 16,
            "--milliseconds-per-sample", 5, "--step-noise", 0.15, "--contract", "async",
            "--steps", _STEPS, "--step-trace", trace])
        real = [group["steps_per_second"] for group in result["by_group"]]
        run = self.run_to_end("covey simulate", [
            cluster.COVEY, "simulate", "--trace", trace, "--nodes", 4, "--groups", _GROUPS,
            "--servers", 1, "--gradient-mib", _TENSORS, "--tensors", _TENSORS, "--contract", "async",
            "--samples", 8, "--steps", _STEPS, "--link-gbps", 5, "--server-gbps", 5,
            "--latency-us", 100, "--uplink-latency-us", 100, "--server-latency-us", 100,
            "--message-us", 20, "-o", "json"])
        self.assertEqual(0, run.code, run)
        [prediction] = json.loads("".join(run.lines("stdout")))["results"]
        predicted = prediction["group_steps_per_second"]
        print(f"steps per second of each group: {real}, predicted {predicted}", flush=True)
        for reached, expected in zip(sorted(real), sorted(predicted), strict=True):
            self.assertAlmostEqual(1, expected / reached, delta=0.15)


if __name__ == "__main__":
    report.main()
