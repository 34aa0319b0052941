# SPDX-License-Identifier: Apache-2.0
"""At the end of a pass a slow worker returns what it has not begun, and others train it."""

from tests import report
from tests.process import uneven_workers


class RecallsTest(uneven_workers.UnevenWorkersTest):
    def test_a_slow_worker_returns_examples(self):
        # The slow worker needs seconds for what waits in its queue, the others none.
        _, returned = self.train(workers=4, batches=960, step_ms=10, slowness=100)
        self.assertGreater(returned, 0)


if __name__ == "__main__":
    report.main()
