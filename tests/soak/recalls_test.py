# SPDX-License-Identifier: Apache-2.0
"""How much longer a pass takes with a worker that is ten times slower, on a quiet machine."""

import unittest

from tests import report
from tests.process import cluster, uneven_workers
from tests.upgrade.release import MISSING, PREVIOUS

_WORKERS, _BATCHES_PER_WORKER, _STEP_MS, _SLOWNESS = 8, 60, 100, 10
_RATIO_MAX = 1.3
_ROUNDS = 3


class RecallsTest(uneven_workers.UnevenWorkersTest):
    def seconds(self, slowness, scheduler=cluster.SCHEDULER):
        seconds, returned = self.train(
            workers=_WORKERS, batches=_WORKERS * _BATCHES_PER_WORKER, step_ms=_STEP_MS,
            slowness=slowness, scheduler=scheduler)
        print(f"slowness {slowness}: {seconds:.2f} s, {returned} examples returned", flush=True)
        return seconds

    def ratios(self, scheduler=cluster.SCHEDULER):
        ratios = [self.seconds(_SLOWNESS, scheduler) / self.seconds(1, scheduler)
                  for _ in range(_ROUNDS)]
        print("ratios:", *(f"{ratio:.2f}" for ratio in ratios), flush=True)
        return ratios

    def test_a_slow_worker_costs_little(self):
        self.assertLessEqual(max(self.ratios()), _RATIO_MAX)

    @unittest.skipIf(MISSING, MISSING)
    def test_it_costs_more_when_nothing_is_recalled(self):
        """Without this the test above would prove nothing. Release 0.1.0 recalls nothing."""
        self.assertGreater(max(self.ratios(PREVIOUS.scheduler)), _RATIO_MAX)


if __name__ == "__main__":
    report.main()
