# SPDX-License-Identifier: Apache-2.0
"""Buffers of a model, such as the statistics of batch normalization."""

from __future__ import annotations

import torch

from covey.torch.staging import host_copy
from covey.worker import Worker


def sync_buffers(model: torch.nn.Module, worker: Worker) -> None:
    """Sets each float32 buffer to its mean over the members of the group.

    Buffers stay local while training; all members call this before evaluating or saving. Others
    than float32, such as counts of batches, stay as they are.
    """
    buffers = [buffer for buffer in model.buffers() if buffer.dtype == torch.float32]
    if not buffers:
        return
    means = [host_copy(buffer).div_(worker.group.size) for buffer in buffers]
    worker.group.all_reduce(means).wait()
    with torch.no_grad():
        for buffer, mean in zip(buffers, means):
            buffer.copy_(mean)
