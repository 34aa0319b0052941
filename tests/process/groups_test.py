# SPDX-License-Identifier: Apache-2.0
"""Samples that Fashion-MNIST needs in one group and in many, with the same hyperparameters."""

import json

from tests import report
from tests.process import cluster

_WORKERS = 8
_TARGET = 0.85
_EPOCHS = 3
# Many groups may need this many times the samples of one.
_RATIO_MAX = 1.5
_COMMAND = [
    cluster.FASHION_MNIST, "--batch", 8, "--hidden", 64, "--epochs", _EPOCHS,
    "--learning-rate", 0.015, "--momentum", 0.9,
    "--target-accuracy", _TARGET, "--stop-at-target", "--evaluate-every", 3000,
]


class GroupsTest(cluster.ProcessTest):
    def samples_to_target(self, groups, *options):
        """None when the target was not reached."""
        run = self.start_run(groups, _WORKERS // groups, [*_COMMAND, *options])
        self.assertEqual(0, run.exit_code(240), run)
        result = json.loads(run.lines("stdout")[-1])
        print(f"{groups} groups, {' '.join(options) or 'buffered'}: accuracy "
              f"{result['test_accuracy']} after {result['samples']} samples; the target after "
              f"{result['samples_to_target']} samples and {result['seconds_to_target']} s",
              flush=True)
        samples, seconds = result["samples_to_target"], result["seconds_to_target"]
        [sentence] = [line for line in run.lines("stderr") if line.startswith("the target was ")]
        if samples is None:
            self.assertIsNone(seconds)
            self.assertEqual("the target was not reached", sentence)
        else:
            self.assertTrue(0 < seconds <= result["train_seconds"], result)
            self.assertIn(f" after {samples:,} samples, in ", sentence)
        return samples

    def test_buffered_needs_no_other_hyper_parameters(self):
        one = self.samples_to_target(1)
        self.assertIsNotNone(one)
        many = self.samples_to_target(_WORKERS)
        self.assertIsNotNone(many)
        self.assertLessEqual(many, _RATIO_MAX * one)

    def test_workers_with_values_of_their_own_stop_together(self):
        self.assertIsNotNone(self.samples_to_target(_WORKERS, "--contract=local:8"))

    def test_applied_on_arrival_the_same_momentum_is_too_much(self):
        self.assertIsNone(
            self.samples_to_target(_WORKERS, "--contract=async", "--automatic-momentum=false"))

    def test_the_governor_takes_out_what_asynchrony_adds(self):
        self.assertIsNotNone(self.samples_to_target(_WORKERS, "--contract=async"))


if __name__ == "__main__":
    report.main()
