# SPDX-License-Identifier: Apache-2.0
"""The types that the package promises hold, as mypy checks them, and the stub of the native module
names exactly its functions."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import covey
from covey import _native
from tests import report

# The types of PyTorch differ between its versions, and reading them takes minutes.
_SETTINGS = """
[mypy]
[mypy-torch.*,numpy.*]
follow_imports = skip
[mypy-torchrec.*]
ignore_missing_imports = True
[mypy-covey.torch.*]
disallow_subclassing_any = False
disallow_any_unimported = False
"""
_PACKAGE = pathlib.Path(covey.__file__).parent


class TypingTest(unittest.TestCase):
    def test_strict(self):
        mypy = shutil.which("mypy", path="/usr/bin") or shutil.which("mypy")
        if mypy is None:
            self.skipTest("needs mypy")
        with tempfile.NamedTemporaryFile("w", suffix=".ini") as settings:
            settings.write(_SETTINGS)
            settings.flush()
            run = subprocess.run(
                [mypy, "--strict", "--explicit-package-bases", "--cache-dir=/dev/null",
                 "--config-file", settings.name, "covey"],
                cwd=_PACKAGE.parent, capture_output=True, text=True, check=False)
        self.assertEqual(0, run.returncode, run.stdout)

    def test_the_stub_is_complete(self):
        stub = (_PACKAGE / "_native.pyi").read_text()
        named = set(re.findall(r"^def (\w+)\(", stub, re.MULTILINE))
        self.assertEqual({name for name in dir(_native) if not name.startswith("__")}, named)


if __name__ == "__main__":
    report.main()
