# SPDX-License-Identifier: Apache-2.0
"""The tests of PyTorch for backends of torch.distributed pass on the backend "covey", but for those
that docs/PYTORCH.md names."""

import json
import os
import pathlib

from tests import report
from tests.process import cluster
from tests.python import interpreter, torchrun

_PROGRAM = pathlib.Path(__file__).with_name("c10d_program.py")
# What the backend lacks, as parts of the names of tests.
_OUT_OF_REACH = (
    "send", "recv",        # between two members
    "monitored_barrier",   # PyTorch has it for gloo alone
    "sparse",
    "test_get_backend",    # the name is not gloo
    "barrier_timeout",     # who is late has left; the error says so in other words
)
# PyTorch 1.13 cannot import its own module under Python 3.11.
_OTHERS_FAULT = "mutable default <class 'torch.distributed._shard"


@interpreter.needs("torch")
class C10dTest(cluster.ProcessTest):
    def outcomes(self, name, *tests):
        """The names of the tests that passed and those that failed, the latter with reasons."""
        results = os.path.join(self.folder, "results")
        run = self.start("tests", [interpreter.PYTHON, _PROGRAM, name, results, *tests],
                         torchrun.environment(self.folder))
        self.assertEqual(0, run.exit_code(840), run)
        rows = [json.loads(line) for line in pathlib.Path(results).read_text().splitlines()]
        passed = [test for test, state, _ in rows if state == "passed"]
        failed = {test: why for test, state, why in rows if state == "failed"}
        return passed, failed

    def test_as_gloo(self):
        passed, failed = self.outcomes("gloo")
        unexpected = {test: why for test, why in failed.items()
                      if not any(part in test for part in _OUT_OF_REACH)
                      and _OTHERS_FAULT not in why}
        self.assertEqual({}, unexpected)
        self.assertGreaterEqual(len(passed), 60)

    def test_as_mpi(self):
        tests = [f"test_all_to_all{kind}" for kind in (
            "", "_complex", "_full_group", "_single_equal_split", "_single_unequal_split",
            "_single_unequal_split_full_group")]
        self.assertEqual((tests, {}), self.outcomes("mpi", *tests))


if __name__ == "__main__":
    report.main()
