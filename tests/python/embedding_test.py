# SPDX-License-Identifier: Apache-2.0
"""covey.torch.Embedding and EmbeddingBag against those of PyTorch, in `covey run`."""

import pathlib

from tests import report
from tests.python import interpreter, worker_programs

_PROGRAMS = pathlib.Path(__file__).with_name("embedding_programs.py")
# The servers' arithmetic is float32, in another order than PyTorch's.
_ROUNDING = 1e-5


@interpreter.needs("torch")
class EmbeddingTest(worker_programs.WorkerProgramsTest):
    def results(self, workers, name):
        """Of all workers, which are one group."""
        return self.run_programs(1, workers, _PROGRAMS, name)

    def check_like_one_process(self, workers, name):
        for result in self.results(workers, name):
            self.assertEqual(40, len(result["losses"]))
            self.assertLess(min(result["losses"]), 0.5 * result["losses"][0])
            for loss, expected in zip(result["losses"], result["expected"]):
                self.assertAlmostEqual(loss, expected, delta=_ROUNDING)
            self.assertLess(result["distance"], _ROUNDING)
            self.assertTrue(result["padding stays"])
            # Gradients of rows leave before the last one of a parameter, with which the step ends.
            self.assertEqual([False, True, True, True], result["submitted"])
            self.assertEqual(40, result["version"], "one update per step")
            self.assertEqual([], [name for name in result["saved"] if "embedding" in name])

    def test_sgd_is_like_pytorch(self):
        self.check_like_one_process(1, "sgd")

    def test_adagrad_is_like_pytorch(self):
        self.check_like_one_process(1, "adagrad")

    def test_two_workers_that_are_buffered_together_are_like_one_process(self):
        self.check_like_one_process(2, "buffered")

    def test_each_push_of_a_worker_of_one_group_is_an_update_under_other_contracts(self):
        for name in ("sgd", "ssp", "groups"):
            for result in self.results(2, name):
                self.assertEqual(80, result["version"], name)

    def test_bags(self):
        result, = self.results(1, "bags")
        self.assertEqual(20, len(result["found"]))
        for name, distances in result["found"].items():
            self.assertLess(max(distances), _ROUNDING, name)
        # Examples without rows are a part of the mean.
        self.assertEqual(([[0.0] * 4] * 2, 2), (result["empty"], result["empty version"]))

    def test_uses_between_two_steps(self):
        result, = self.results(1, "uses")
        self.assertEqual(7, len(result["found"]))
        for name, (distance, versions) in result["found"].items():
            self.assertLess(distance, _ROUNDING, name)
            self.assertEqual(0, versions, f"{name}: one update per step")
        self.assertEqual([False, True], result["needs"])
        self.assertEqual([True, False, False], [size == 0 for size in result["padding"]])
        self.assertEqual((0.0, [2, 2, 4]), (result["nothing"], result["shape"]))
        self.assertTrue(result["looks"])

    def test_a_collection_reads_all_tables_at_once(self):
        result, = self.results(1, "collection")
        self.assertEqual(["user", "bought", "wished", "seen"], result["names"])
        self.assertLess(result["outputs"], _ROUNDING)
        self.assertLess(max(result["rows"]), _ROUNDING)
        # One call for each forward(), and none for rows that were prefetched.
        self.assertEqual([4] * 11, result["calls"])
        self.assertEqual([10, 10], result["updates"], "one push per table and step")
        self.assertEqual([], result["saved"])
        for about, text in (("missing", "features have no 'bought'"),
                            ("module", "feature 'user' has Embedding(2, 2)"),
                            ("weights", "only 'sum'")):
            self.assertIn(text, result[about], about)

    def test_prefetched_rows_have_the_pushes_of_this_process(self):
        result, = self.results(1, "prefetched")
        for about in ("own", "of another module"):
            self.assertEqual([True, False, True], result[about], about)
        self.assertEqual([True] * 3, result["of others"])
        self.assertLess(result["trained"], _ROUNDING)
        self.assertEqual((19, 4), (result["taken"], result["kept"]))

    def test_says_what_is_wrong(self):
        said, = self.results(1, "mistakes")
        for about, text in (("missing", "NotFound"), ("width", "rows of 4 elements"),
                            ("table", "create_sparse_table"), ("max_norm", "not renormalized"),
                            ("padding_idx", "padding_key="), ("mode", "'sum', 'mean' or 'max'"),
                            ("padding_key", "64 bits"), ("no optimizer", "embeddings="),
                            ("floats", "torch.float32; convert with .long()"), ("list", "got list"),
                            ("weights", "only 'sum'"), ("copy", "cannot be copied"),
                            ("pickle", "cannot be pickled"), ("samples", "samples_per_step="),
                            ("infinite", "InvalidArgument"), ("after it", "accepted"),
                            ("bsp", "takes pushes of groups only"), ("local", "LocalRows"),
                            ("scaler", "GradScaler"),
                            ("full", "FailedPrecondition"), ("dropped", "NotFound"),
                            ("deadline", "DeadlineExceeded"), ("after the deadline", "accepted")):
            self.assertIn(text, said[about], about)
        self.assertGreater(said["rows refused"], 500)

    def test_members_without_examples_push_nothing(self):
        for result in self.results(2, "loader"):
            self.assertEqual(4 * 203, result["trained"])
            self.assertLess(result["after"], 0.5 * result["before"])
            # One for each two pushes, and perhaps one that a flush has made of a single one.
            self.assertLessEqual(result["pushes"], 2 * result["version"])
            self.assertLessEqual(2 * result["version"], result["pushes"] + 4)


if __name__ == "__main__":
    report.main()
