# SPDX-License-Identifier: Apache-2.0
"""Samples that Fashion-MNIST needs in one group of sixteen workers and in sixteen groups of one."""

import json

from tests import report
from tests.process import cluster

_WORKERS, _TARGET, _RATIO_MAX = 16, 0.85, 1.2
_COMMAND = [
    cluster.FASHION_MNIST, "--batch", 4, "--hidden", 64, "--epochs", 4, "--learning-rate", 0.015,
    "--momentum", 0.9, "--target-accuracy", _TARGET, "--stop-at-target", "--evaluate-every", 3000]


class ManyGroupsTest(cluster.ProcessTest):
    def samples_to_target(self, groups):
        run = self.start_run(groups, _WORKERS // groups, _COMMAND)
        self.assertEqual(0, run.exit_code(600), run)
        result = json.loads(run.lines("stdout")[-1])
        print(f"{groups} groups: the target after "
              f"{result['samples_to_target']} samples, accuracy {result['test_accuracy']}",
              flush=True)
        self.assertIsNotNone(result["samples_to_target"], result)
        return result["samples_to_target"]

    def test_need_few_more_samples_than_one(self):
        one = self.samples_to_target(1)
        self.assertLess(self.samples_to_target(_WORKERS), _RATIO_MAX * one)


if __name__ == "__main__":
    report.main()
