# SPDX-License-Identifier: Apache-2.0
"""The example with the Trainer of Hugging Face trains."""

import os
import pathlib

import covey
from tests import report
from tests.process import cluster
from tests.python import interpreter

_EXAMPLE = pathlib.Path(__file__).parents[2] / "worker/examples/huggingface/trainer.py"


@interpreter.needs("transformers")
class TrainerTest(cluster.ProcessTest):
    def test_trains(self):
        os.environ["PYTHONPATH"] = str(pathlib.Path(covey.__file__).parents[1])
        run = self.start_run(2, 2, [interpreter.PYTHON, _EXAMPLE], ["--servers", 2])
        self.assertEqual(0, run.exit_code(280), run)
        first, last = run.await_line(r"losses ([\d.]+) ([\d.]+)").groups()
        self.assertLess(float(last), 0.7 * float(first), run)


if __name__ == "__main__":
    report.main()
