# SPDX-License-Identifier: Apache-2.0
"""Where programs of tests have their tensors: on the CPU, or on a GPU.

    bazel test --test_env=TORCH_TEST_DEVICE=cuda //tests/python:torch_test

Their results travel as numbers, so the tests are the same.
"""

import os

import torch

DEVICE = os.environ.get("TORCH_TEST_DEVICE", "cpu")

if DEVICE != "cpu":
    torch.set_default_device(DEVICE)


def generator(seed):
    """Random numbers for tensors there."""
    return torch.Generator(DEVICE).manual_seed(seed)
