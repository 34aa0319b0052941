# SPDX-License-Identifier: Apache-2.0
"""One of four workers dies and another comes: the loss is in the band of undisturbed runs."""

from tests import report
from tests.process import cluster

_SEEDS = (1, 2, 3)


class ElasticLossTest(cluster.ProcessTest):
    def loss(self, seed, *options):
        result = self.result_of(1, 4, [
            cluster.FASHION_MNIST, "--epochs", 5, "--hidden", 64, "--seed", seed],
            ["--servers", 2, *options])
        print(f"seed {seed}, {' '.join(options) or 'undisturbed'}: loss {result['train_loss']:.5f}",
              flush=True)
        self.assertEqual(5 * 60_000, result["samples"])
        return result

    def test_is_in_the_band_of_undisturbed_runs(self):
        band = [self.loss(seed)["train_loss"] for seed in _SEEDS]
        width = max(band) - min(band)
        for seed in _SEEDS:
            result = self.loss(seed, "--on-failure", "restart", "--kill", "worker-1@1s")
            self.assertEqual(1, result["losses"]["died"])
            self.assertGreater(result["losses"]["recoveries"], 0)
            # As far beyond the band as it is wide: three runs do not show its ends.
            self.assertGreater(result["train_loss"], min(band) - width)
            self.assertLess(result["train_loss"], max(band) + width)


if __name__ == "__main__":
    report.main()
