# SPDX-License-Identifier: Apache-2.0
"""How torch.distributed learns the backend "covey" from an installed package, and that this ends no
`import torch`."""

import os
import shutil
import subprocess
import tempfile
import unittest

from tests import report
from tests.python import installed, interpreter

_KNOWS = """\
import sys
import torch
print("covey" in torch.distributed.Backend.backend_list, "covey" in sys.modules)
"""
# As `import torch` calls it; PyTorch 1.13 cannot register a backend of a device.
_REGISTERS = """\
import torch, covey_torch_backend
{before}
covey_torch_backend.register()
print(hasattr(torch.distributed.Backend, "COVEY"))
"""
_MISSING = """\
import torch
try:
    torch.distributed.init_process_group("covey", rank=0, world_size=1,
                                         init_method="file://" + {file!r})
except ImportError as error:
    print(error)
"""


@interpreter.needs("torch")
class BackendTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def run_program(self, text, *path):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))}
        done = subprocess.run([interpreter.PYTHON, "-c", text], cwd=self.folder, env=environment,
                              capture_output=True, text=True, check=False)
        self.assertEqual(0, done.returncode, done.stderr)
        return done.stdout.strip(), done.stderr

    @unittest.skipUnless(interpreter.torch_finds_backends(), "needs PyTorch 2.5")
    def test_import_torch_is_enough_and_loads_no_covey(self):
        metadata = installed.metadata(self.folder)
        said, errors = self.run_program(_KNOWS, metadata, installed.FOLDER)
        self.assertEqual("True False", said)
        self.assertNotIn("covey", errors)

    @unittest.skipUnless(interpreter.torch_finds_backends(), "needs PyTorch 2.5")
    def test_says_what_is_missing_when_the_backend_is_asked_for(self):
        shutil.copy(installed.FOLDER / "covey_torch_backend.py", self.folder)
        said, _ = self.run_program(_MISSING.format(file=f"{self.folder}/store"),
                                   installed.metadata(self.folder), self.folder)
        self.assertIn("covey", said)

    def test_an_error_ends_no_import_of_torch(self):
        broken = "torch.distributed.Backend.register_backend = None"
        said, errors = self.run_program(_REGISTERS.format(before=broken), installed.FOLDER)
        self.assertEqual("False", said)
        self.assertIn("does not know the backend covey", errors)

    def test_registers_once(self):
        both = "import covey.torch"
        said, _ = self.run_program(_REGISTERS.format(before=both), installed.FOLDER)
        self.assertEqual("True", said)

    def test_runs_scripts_with_the_backend(self):
        script = os.path.join(self.folder, "script.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write("import sys, torch\n"
                       "print(torch.distributed.Backend('covey').lower(), *sys.argv, __name__,"
                       " sys.path[0])\n")
        done = subprocess.run([interpreter.PYTHON, "-m", "covey.torch", script, "--more"],
                              env={**os.environ, "PYTHONPATH": str(installed.FOLDER)},
                              capture_output=True, text=True, check=False)
        self.assertEqual(f"covey {script} --more __main__ {self.folder}", done.stdout.strip(),
                         done.stderr)


if __name__ == "__main__":
    report.main()
