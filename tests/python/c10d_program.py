# SPDX-License-Identifier: Apache-2.0
"""Runs the tests that PyTorch ships for its backends (torch.testing._internal.distributed) over Covey.

    c10d_program.py NAME RESULTS [TEST...]

They run as for the backend NAME, "gloo" or "mpi", because many tests are for known names only; in its
place the program puts Covey's. RESULTS gets a line of JSON for each test: its name, "passed",
"skipped" or "failed", and why. Without names of tests all are run.
"""

import json
import os
import pathlib
import sys
import tempfile
import types
import unittest

NAME, RESULTS = sys.argv[1:3]
os.environ.update(BACKEND=NAME, WORLD_SIZE="2", CUDA_VISIBLE_DEVICES="",
                  DISTRIBUTED_TESTS_DEFAULT_TIMEOUT="100", TEMP_DIR=tempfile.mkdtemp())
try:
    import expecttest  # pylint: disable=unused-import
except ImportError:  # which these tests inherit from, and do not use
    expecttest = types.ModuleType("expecttest")
    expecttest.TestCase, expecttest.ACCEPT = unittest.TestCase, False
    sys.modules["expecttest"] = expecttest

import torch
import torch.distributed as dist
import torch.multiprocessing
from torch.distributed import distributed_c10d

import covey.torch

_init = distributed_c10d.init_process_group


def init_process_group(backend=None, **options):
    return _init("covey" if backend == NAME else backend, **options)


dist.init_process_group = distributed_c10d.init_process_group = init_process_group
torch.set_num_threads(1)

from torch.testing._internal.distributed import distributed_test


class BackendTest(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
    def setUp(self):
        super().setUp()
        # By fork, because each start of a new Python imports PyTorch for seconds.
        self._start_processes(torch.multiprocessing.get_context("fork").Process)

    @classmethod
    def _run(cls, rank, test_name, file_name, *others, **more):
        # Each test has servers of its own, which the worker of rank 0 starts (covey.init).
        tempfile.tempdir = f"{file_name}.folder"
        os.makedirs(tempfile.tempdir, exist_ok=True)
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE="2",
                          COVEY_LOG_LEVEL="error")
        super()._run(rank, test_name, file_name, *others, **more)


def outcome(name):
    result = unittest.TestResult()
    BackendTest(name).run(result)
    failures = result.errors + result.failures
    if failures:
        return "failed", failures[0][1]
    return ("skipped", result.skipped[0][1]) if result.skipped else ("passed", "")


with pathlib.Path(RESULTS).open("w", encoding="utf-8") as results:
    for test in sys.argv[3:] or [one for one in dir(BackendTest) if one.startswith("test_")]:
        results.write(json.dumps([test, *outcome(test)]) + "\n")
        results.flush()
