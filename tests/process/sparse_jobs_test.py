# SPDX-License-Identifier: Apache-2.0
"""The jobs on sparse tables, small: WordNet's graph and a factorization machine, by `covey run`."""

import os
import random

from tests import report
from tests.process import cluster, program

_WORDNET = program.built("worker/examples/wordnet/wordnet")
_FACTORIZATION = program.built("worker/examples/factorization/factorization")

# A fifth of the synsets, those with the most neighbors, and a tenth of the time.
_SMALL = ("--neighbors-min", 6, "--held-out", 500, "--passes", 3)
_MRR_MIN = 0.3


class SparseJobsTest(cluster.ProcessTest):
    def run_job(self, command, groups=1, workers=1, options=("--servers", 2)):
        return self.result_of(groups, workers, [str(word) for word in command],
                              [str(option) for option in options])

    def test_groups_learn_the_graph(self):
        result = self.run_job([_WORDNET, *_SMALL], groups=2)
        self.assertGreater(result["mrr"], _MRR_MIN)
        self.assertEqual(1000, result["questions"])
        self.assertEqual(3 * 2 * result["training_facts"], result["samples"])
        self.assertEqual(1000, sum(part["questions"] for part in result["by_relation"].values()))
        self.assertEqual(2, result["groups"])

    def test_members_of_a_group_learn_it_while_a_server_dies(self):
        result = self.run_job([_WORDNET, *_SMALL], workers=2,
                              options=("--servers", 2, "--kill", "server-0@1s"))
        self.assertGreater(result["mrr"], _MRR_MIN)
        self.assertEqual(1000, result["questions"])
        self.assertEqual(0, result["losses"]["shards_lost"])

    def test_controls_fail(self):
        self.assertLess(self.run_job([_WORDNET, *_SMALL, "--untrained"])["mrr"], 0.01)
        # The answers that were trained are told from those that were not.
        mean = self.run_job([_WORDNET, *_SMALL, "--relation-mean", 1])
        self.assertLess(mean["mrr"], _MRR_MIN)

    def test_data_that_is_missing_is_named(self):
        run = self.start_run(1, 1, [_WORDNET, "--data-dir", self.folder])
        self.assertEqual(1, run.exit_code(), run)
        self.assertTrue(any("apt-get install --reinstall wordnet-base" in line
                            for line in run.lines("stderr")), run)

    def write_samples(self, name, count):
        """Labels that are the exclusive or of two features, which no linear model can tell."""
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="ascii") as file:
            for number in range(count):
                first, second = number % 2, number // 2 % 2
                file.write(f"{first ^ second} {10 + first}:1 {20 + second}:1 {1000 + number % 7}:1\n")
        return path

    def train_on_files(self, *more, passes=4, **where):
        return self.run_job([_FACTORIZATION, "--data", "libsvm",
                             "--train-file", self.write_samples("train", 4000),
                             "--test-file", self.write_samples("test", 400), "--batch", 64,
                             "--learning-rate", 0.1, "--passes", passes, *more], **where)

    def test_only_factors_learn_pairs(self):
        result = self.train_on_files(groups=2)
        self.assertGreater(result["auc"], 0.99)
        self.assertLess(result["log_loss"], 0.2)
        self.assertEqual((4 * 4000, 400, 11),
                         (result["samples"], result["test_samples"], result["features"]))
        self.assertLess(self.train_on_files("--model", "linear")["auc"], 0.6)

    def test_rounds_learn_pairs_with_fewer_bytes(self):
        each = self.train_on_files("--contract", "local:1", groups=2)
        rounds = self.train_on_files("--contract", "local:8", groups=2)
        of_holders = self.train_on_files("--contract", "local:8", "--round-mean", "holders",
                                         groups=2)
        for result in (each, rounds, of_holders):
            self.assertGreater(result["auc"], 0.99)
            self.assertEqual(4 * 4000, result["samples"])
        self.assertLess(rounds["row_bytes"], each["row_bytes"] / 4)
        self.assertAlmostEqual(2 ** 0.5, rounds["outer_rate"])
        self.assertEqual(1, of_holders["outer_rate"])

    def test_rounds_go_on_while_a_server_dies(self):
        result = self.train_on_files("--contract", "local:4", passes=40, groups=2,
                                     options=("--servers", 2, "--kill", "server-0@1s"))
        self.assertGreater(result["auc"], 0.99)
        self.assertEqual(40 * 4000, result["samples"])
        self.assertEqual(0, result["losses"]["shards_lost"])

    def test_the_norm_makes_weights_zero(self):
        weights = {}
        for norm in (0, 1000):
            result = self.train_on_files("--model", "linear", "--optimizer", "ftrl", "--l1", norm)
            weights[norm] = result["zero_weights"]
        self.assertEqual({0: 0, 1000: 11}, weights)

    def write_noise(self, name, count):
        """Labels that follow from one feature, among many that say nothing."""
        draw = random.Random(name)
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="ascii") as file:
            for number in range(count):
                label = draw.random() < (0.8 if number % 2 else 0.2)
                noise = " ".join(f"{key}:1" for key in sorted(draw.sample(range(100, 700), 4)))
                file.write(f"{int(label)} {number % 2}:1 {noise}\n")
        return path

    def test_what_a_filter_holds_back_changes_no_result(self):
        train = [_FACTORIZATION, "--data", "libsvm", "--train-file", self.write_noise("train", 6000),
                 "--test-file", self.write_noise("test", 600), "--batch", 16, "--passes", 3]
        ftrl = [*train, "--model", "linear", "--optimizer", "ftrl", "--l1", 5, "--l2", 0,
                "--learning-rate", 0.5, "--objective"]
        plain, filtered = self.run_job(ftrl), self.run_job([*ftrl, "--filter", "kkt"])
        last = self.run_job([*ftrl, "--filter", "kkt", "--unfiltered-passes", 1])
        counts = filtered["weights_filtered"]
        zeros = counts["zero_pushed"] + counts["zero_held_back"]
        self.assertGreater(counts["zero_held_back"] - counts["pushed_later"], 0.9 * zeros)
        self.assertLess(last["weights_filtered"]["held_back"], counts["held_back"])
        # Of the rows of all weights, in the passes with the filter.
        of_all = last["weights_filtered"]
        self.assertGreater(of_all["held_back"], 0.9 * (of_all["held_back"] + of_all["pushed"]))
        self.assertGreater(plain["zero_weights"], 250)
        for result, part in ((filtered, 0.005), (last, 0.001)):
            self.assertAlmostEqual(1, result["objective"] / plain["objective"], delta=part)
            self.assertAlmostEqual(plain["zero_weights"], result["zero_weights"], delta=10)
        self.assertEqual(0, plain["weights_filtered"]["pushed"])

        result = self.train_on_files("--filter", "significance", "--significance", 1)
        self.assertGreater(result["auc"], 0.99)
        for counts in (result["weights_filtered"], result["factors_filtered"]):
            self.assertGreater(counts["held_back"], 0.1 * counts["pushed"])
            self.assertLess(counts["pushed_later"], counts["held_back"])

    def test_features_that_come_too_seldom_have_no_row(self):
        weights = {}
        for updates in (5, 65535):
            result = self.train_on_files("--model", "linear", "--admit-after", updates)
            weights[updates] = result["zero_weights"]
        self.assertEqual({5: 0, 65535: 11}, weights)

    def test_a_mistake_in_a_file_is_named(self):
        path = self.write_samples("bad", 3)
        with open(path, "a", encoding="ascii") as file:
            file.write("1 3:x\n")
        run = self.start_run(1, 1, [_FACTORIZATION, "--data", "libsvm", "--train-file", path,
                                    "--test-file", path])
        self.assertEqual(1, run.exit_code(), run)
        self.assertTrue(any(f"{path}: line 4, column 5: 'x' is no value" in line
                            for line in run.lines("stderr")), run)


if __name__ == "__main__":
    report.main()
