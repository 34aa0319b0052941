# SPDX-License-Identifier: Apache-2.0
"""The example with JAX trains."""

import os
import pathlib
import unittest

import covey
from tests import report
from tests.process import cluster
from tests.python import interpreter

_EXAMPLE = pathlib.Path(__file__).parents[2] / "worker/examples/jax/fashion_mnist.py"


@interpreter.needs("jax")
@unittest.skipUnless(os.path.exists("/usr/share/datasets/fashion-mnist"), "needs the data set")
class JaxTest(cluster.ProcessTest):
    def test_trains(self):
        os.environ["PYTHONPATH"] = str(pathlib.Path(covey.__file__).parents[1])
        run = self.start_run(2, 2, [interpreter.PYTHON, _EXAMPLE, "--epochs", 3], ["--servers", 2])
        self.assertEqual(0, run.exit_code(280), run)
        accuracy = float(run.await_line(r"test_accuracy ([\d.]+)").group(1))
        self.assertGreaterEqual(accuracy, 0.85, run)


if __name__ == "__main__":
    report.main()
