# SPDX-License-Identifier: Apache-2.0
"""What tests/soak/fuzz says of targets: programs in Python stand for those of libFuzzer."""

import os
import pathlib
import tempfile
import unittest

from tests import report
from tests.soak import fuzz_targets

# Writes a seed when asked for it; then "finds" an input that is new, and one that crashes if there
# is a file named `bad` among its folders.
_PROGRAM = """#!/usr/bin/python3
import pathlib, sys
flags = dict(argument.lstrip("-").split("=") for argument in sys.argv[1:] if argument[0] == "-")
if "write-seeds" in flags:
    pathlib.Path(flags["write-seeds"], "seed-0").write_text("seed")
    sys.exit(0)
folders = [pathlib.Path(argument) for argument in sys.argv[1:] if argument[0] != "-"]
assert folders[1].joinpath("seed-0").read_text() == "seed"
print("#12\\tNEW", file=sys.stderr)
folders[0].joinpath(f"new-{flags['seed']}").touch()
if folders[-1].joinpath("bad").exists():
    pathlib.Path(flags["artifact_prefix"] + "crash-1").touch()
    sys.exit(77)
print("stat::number_of_executed_units: 34", file=sys.stderr)
"""


class FuzzTargetsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.program = self.folder / "program"
        self.program.write_text(_PROGRAM, encoding="utf-8")
        os.chmod(self.program, 0o755)
        self.kept = self.folder / "kept"

    def run_once(self, seed=1):
        runner = fuzz_targets.Runner(5, seed, self.folder / "out", lambda label: str(self.program),
                                     lambda label: self.kept)
        return runner.run("//a/b:c_fuzz", self.fail)

    def test_counts_executions_and_new_inputs(self):
        self.assertEqual(fuzz_targets.Outcome("c_fuzz", 34, 1, [], 0), self.run_once())
        # What was found stays, and is not new again.
        self.assertEqual(0, self.run_once().new_inputs)
        self.assertEqual(1, self.run_once(seed=2).new_inputs)

    def test_keeps_an_input_that_crashes(self):
        self.kept.mkdir()
        (self.kept / "bad").touch()
        outcome = self.run_once()
        self.assertEqual([str(self.folder / "out/c_fuzz/crashes/crash-1")], outcome.crashes)
        self.assertEqual(12, outcome.executions)
        self.assertFalse(outcome.good())

    def test_an_end_without_an_input_is_no_success(self):
        self.assertFalse(fuzz_targets.Outcome("c_fuzz", code=1).good())

    def test_prints_a_table(self):
        outcomes = [fuzz_targets.Outcome("wire_fuzz", 12345, 6),
                    fuzz_targets.Outcome("a_fuzz", 1, 0, ["x"], 77),
                    fuzz_targets.Outcome("b_fuzz", code=3)]
        self.assertEqual(
            ["target     executions  new inputs            crashes",
             "wire_fuzz       12345           6                  0",
             "a_fuzz              1           0                  1",
             "b_fuzz              0           0  ended with code 3"],
            fuzz_targets.table(outcomes))


if __name__ == "__main__":
    report.main()
