# SPDX-License-Identifier: Apache-2.0
"""The example with an embedding of hashed words learns."""

import pathlib
import shutil
import subprocess

from tests import report
from tests.python import interpreter, worker_programs

_EXAMPLE = pathlib.Path(__file__).parents[2] / "worker/examples/pytorch/package_words.py"


@interpreter.needs("torch")
class PackageWordsTest(worker_programs.WorkerProgramsTest):
    def accuracies(self, *arguments):
        """On the examples that were held out: of the model, and of the commoner answer."""
        run = self.start_run(1, 2, [interpreter.PYTHON, _EXAMPLE, *arguments], ["--servers", 2])
        self.assertEqual(0, run.exit_code(280), run)
        found = run.await_line(r"test_accuracy ([\d.]+), of the commoner answer ([\d.]+)")
        return float(found.group(1)), float(found.group(2))

    def test_learns_words_that_were_drawn(self):
        accuracy, commoner = self.accuracies("--data", "synthetic")
        self.assertLess(commoner, 0.6)
        self.assertGreaterEqual(accuracy, 0.87)

    def test_learns_packages(self):
        if not _lists_packages():
            self.skipTest("needs the lists of packages: apt-get update")
        accuracy, commoner = self.accuracies("--examples", 20000)
        self.assertGreaterEqual(accuracy, commoner + 0.08)


def _lists_packages():
    if shutil.which("apt-cache") is None:
        return False
    listed = subprocess.run(["apt-cache", "dumpavail"], stdout=subprocess.PIPE, check=False).stdout
    return listed.count(b"\nPackage: ") > 20000


if __name__ == "__main__":
    report.main()
