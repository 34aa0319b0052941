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


def needs(module):
    """A decorator: skips a test where the module is missing."""
    return unittest.skipUnless(has(module), f"needs {module}")
