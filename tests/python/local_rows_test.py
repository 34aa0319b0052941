# SPDX-License-Identifier: Apache-2.0
"""Rounds of rows in Python against a worker of NumPy, in `covey run`."""

import pathlib

from tests import report
from tests.python import interpreter, worker_programs

_PROGRAMS = pathlib.Path(__file__).with_name("local_rows_programs.py")


@interpreter.needs("numpy")
class LocalRowsTest(worker_programs.WorkerProgramsTest):
    def results(self, groups, name, workers=1):
        return self.run_programs(groups, workers, _PROGRAMS, name)

    def check_like_numpy(self, groups, touched, program="like numpy"):
        for result in self.results(groups, program):
            self.assertGreater(result["pulls"], 9)
            self.assertTrue(result["same"], "rows of the worker's own steps")
            self.assertTrue(result["end"], result["difference"])
            moved = {place for place, has in enumerate(result["moved"]) if has}
            self.assertLessEqual(moved, touched)
            self.assertGreater(len(moved), len(touched) // 2)
            self.assertEqual([1 + (step + 1) // 3 for step in range(14)] + [6], result["rounds"])
            self.assertEqual(("rows", 3, [12, 3]),
                             (result["name"], result["width"], result["shape"]))

    def test_two_groups_are_like_numpy(self):
        self.check_like_numpy(2, set(range(30)))

    def test_two_groups_are_like_numpy_with_means_of_holders(self):
        self.check_like_numpy(2, set(range(30)), "like numpy of holders")

    def test_one_group_is_like_numpy(self):
        self.check_like_numpy(1, set(range(20)))

    def test_memory_of_the_program(self):
        result, = self.results(1, "memory")
        self.assertEqual((True, [0.5] * 9), (result["is out"], result["first"]))
        if not interpreter.has("torch"):
            return
        # Key 5 came twice; Adagrad's first step is the rate, whatever the gradient.
        for row in result["tensors"]:
            for element in row:
                self.assertAlmostEqual(0.2, element, places=6)
        self.assertTrue(result["tensor"])
        # 0.3 / sqrt(1 + 1/4), and 0.3 / sqrt(2).
        for row, expected in zip(result["then"], (0.2 - 0.15 / 1.25 ** 0.5, 0.2 - 0.3 / 2 ** 0.5)):
            for element in row:
                self.assertAlmostEqual(expected, element, places=6)
        self.assertIn("convert with .long()", result["refused"][0])
        self.assertIn("convert with .float()", result["refused"][1])

    def test_says_what_is_wrong(self):
        said, = self.results(1, "mistakes")
        for about, text in (
                ("contract", "InvalidArgument: table 'a' is sparse and under async; rounds of rows"),
                ("no inner", "LOCAL needs one for the steps between rounds"),
                ("inner", "choose SGD, ADAGRAD"), ("outer", "SGD with rate 1"),
                ("mean", "sparse.round_mean = OF_HOLDERS, but only LOCAL tables have rounds"),
                ("rows_max", "rows_max is 0"),
                ("many", "4 is the most (rows_max)"), ("size", "pull of 4 keys into 9 elements"),
                ("keys", "64-bit integers"), ("read-only", "out is read-only"),
                ("gradient", "step with 9 elements after a pull of 4 keys"),
                ("float64", "convert with .astype(numpy.float32)"),
                ("nan", "the gradient holds nan at column 1 of key 1954"),
                ("none", "step with 0 elements after a pull of 4 keys"),
                ("no pull", "after a pull of 0 keys"), ("client", "LocalRows"),
                ("closed", "FailedPrecondition: it was closed")):
            self.assertIn(text, said[about], about)
        self.assertTrue(said["after it"])

    def test_a_group_of_several_is_refused(self):
        for result in self.results(1, "several", workers=2):
            self.assertIn("FailedPrecondition", result["said"])
            self.assertIn("start as many groups as workers", result["said"])

    def test_an_interrupted_wait_goes_on_later(self):
        first, second = self.results(2, "interrupted")
        self.assertLess(first["seconds"], 15)
        self.assertEqual((2, first["last"]), (first["round"], second["last"]))

    def test_an_interrupted_wait_does_not_keep_the_program(self):
        first, _ = self.results(2, "left")
        self.assertLess(first["seconds"], 15)


if __name__ == "__main__":
    report.main()
