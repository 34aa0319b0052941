# SPDX-License-Identifier: Apache-2.0
"""Sparse logistic regression in which a filter holds back what would change no weight."""

from tests import report
from tests.process import cluster, program

_FACTORIZATION = program.built("worker/examples/factorization/factorization")


class FilterTest(cluster.ProcessTest):
    """Which Debian package is a program, from features of packages."""

    def train(self, *options):
        result = self.result_of(1, 1, [
            _FACTORIZATION, "--data", "roles", "--model", "linear", "--optimizer", "ftrl",
            "--l1", 1, "--l2", 0, "--learning-rate", 0.5, "--batch", 16, "--passes", 10,
            "--objective", *options], seconds=900)
        counts = result["weights_filtered"]
        zeros = counts["zero_pushed"] + counts["zero_held_back"]
        left = counts["zero_held_back"] - counts["pushed_later"]
        print(f"{options}: objective {result['objective']:.6f}, {left} of {zeros} rows of zeros "
              "never sent", flush=True)
        return result["objective"], left / max(1, zeros)

    def test_nine_of_ten_are_held_back_at_the_same_objective(self):
        plain, _ = self.train()
        objective, left = self.train("--filter", "kkt")
        self.assertGreater(left, 0.9)
        self.assertAlmostEqual(1, objective / plain, delta=0.001)
        # Squares of sums for sums of squares: gradients that come late in one piece do harm.
        late, _ = self.train("--filter", "kkt", "--filter-pieces", 1)
        self.assertGreater(late / plain, 1.01)


if __name__ == "__main__":
    report.main()
