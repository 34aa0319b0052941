# SPDX-License-Identifier: Apache-2.0
"""covey.torch.torchrec beside the collections of TorchRec; skipped where TorchRec is missing.

    bazel test --test_env=COVEY_TEST_PYTHON=FOLDER/bin/python //tests/python:torchrec_test
"""

import math
import pathlib

from tests import report
from tests.python import interpreter, worker_programs

_PROGRAMS = pathlib.Path(__file__).with_name("torchrec_programs.py")
_ROUNDING = 1e-5


@interpreter.needs("torchrec")
class TorchRecTest(worker_programs.WorkerProgramsTest):
    def result(self, name):
        return self.run_programs(1, 1, _PROGRAMS, name)[0]

    def test_bags_train_like_those_of_torchrec(self):
        result = self.result("bags")
        for name in ("sum", "mean", "weighted"):
            found = result[name]
            self.assertLess(found["apart"], _ROUNDING, name)
            self.assertLess(found["rows"], _ROUNDING, name)
            self.assertTrue(found["keys"], name)
            # Uniform between the bounds of the configuration.
            self.assertLess(found["first"], math.sqrt(1 / 20))
            self.assertGreater(found["first"], 0.9 * math.sqrt(1 / 20))

    def test_rows_train_like_those_of_torchrec(self):
        found = self.result("rows")
        self.assertLess(found["apart"], _ROUNDING)
        self.assertLess(found["rows"], _ROUNDING)
        self.assertEqual(*found["keys"])
        self.assertTrue(found["lengths"] and found["indices"])

    def test_says_what_is_wrong(self):
        said = self.result("mistakes")
        for about, text in (("init_fn", "pass initializer="), ("data_type", "is INT8"),
                            ("name", "two tables are called 'refused'"), ("width", "4, 8")):
            self.assertIn(text, said[about], about)


if __name__ == "__main__":
    report.main()
