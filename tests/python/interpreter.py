# SPDX-License-Identifier: Apache-2.0
"""The Python that runs programs of tests: this one, or that of a virtual environment.

    bazel test --test_env=COVEY_TEST_PYTHON=FOLDER/bin/python //tests/python:torch_test
"""

import functools
import os
import subprocess
import sys
import unittest

PYTHON = os.environ.get("COVEY_TEST_PYTHON", sys.executable)


@functools.cache
def has(module):
    """Whether it can import the module."""
    look = f"import importlib.util, sys; sys.exit(not importlib.util.find_spec({module!r}))"
    return subprocess.run([PYTHON, "-c", look], check=False).returncode == 0


@functools.cache
def torch_finds_backends():
    """Whether its PyTorch looks for backends of other packages: from 2.5 on."""
    look = ("import importlib.metadata as m; "
            "print(*m.version('torch').split('.')[:2])")
    found = subprocess.run([PYTHON, "-c", look], check=False, capture_output=True, text=True)
    return found.returncode == 0 and tuple(map(int, found.stdout.split())) >= (2, 5)


def needs(module):
    """A decorator: skips a test where the module is missing."""
    return unittest.skipUnless(has(module), f"needs {module}")
