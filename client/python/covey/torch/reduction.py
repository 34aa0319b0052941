# SPDX-License-Identifier: Apache-2.0
"""Tensors of any type as what a Covey group carries, and their reduction in the order of ranks."""

from __future__ import annotations

from typing import Any, Callable

import torch
from torch.distributed import ReduceOp


def as_floats(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor's bytes as float32, in place where its memory allows that, padded otherwise.

    Broadcast and all-gather move bytes and compute nothing, so they carry elements of any type.
    """
    flat = tensor.detach().contiguous().view(-1).view(torch.uint8)
    if flat.numel() % 4 == 0 and flat.data_ptr() % 4 == 0:
        return flat.view(torch.float32)
    padded = torch.zeros((flat.numel() + 3) // 4 * 4, dtype=torch.uint8)
    padded[:flat.numel()] = flat
    return padded.view(torch.float32)


def restore(floats: torch.Tensor, tensor: torch.Tensor) -> None:
    """Writes the bytes behind `floats` to a tensor of the same size."""
    if floats.data_ptr() == tensor.data_ptr():
        return
    count = tensor.numel() * tensor.element_size()
    source = floats.contiguous().view(torch.uint8)[:count].view(tensor.dtype)
    tensor.copy_(source.view(tensor.shape))


def _minimum(sum_: torch.Tensor, part: torch.Tensor) -> None:
    torch.minimum(sum_, part, out=sum_)


def _maximum(sum_: torch.Tensor, part: torch.Tensor) -> None:
    torch.maximum(sum_, part, out=sum_)


# "AVG" is a sum that is divided at the end.
_REDUCE: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "SUM": torch.Tensor.add_,
    "AVG": torch.Tensor.add_,
    "PRODUCT": torch.Tensor.mul_,
    "MIN": _minimum,
    "MAX": _maximum,
    "BAND": torch.Tensor.bitwise_and_,
    "BOR": torch.Tensor.bitwise_or_,
    "BXOR": torch.Tensor.bitwise_xor_,
}


def operation_of(options: Any) -> str:
    """The name of the operation that the options ask for."""
    if options is None:
        return "SUM"
    for name in _REDUCE:
        if options.reduceOp == getattr(ReduceOp, name):
            return name
    raise NotImplementedError(
        f"the backend covey cannot reduce by {options.reduceOp}; it knows {', '.join(_REDUCE)}")


def check(tensor: torch.Tensor) -> None:
    if tensor.layout != torch.strided or tensor.device.type != "cpu":
        raise NotImplementedError(f"the backend covey takes dense tensors on the CPU, and this one is "
                                  f"{tensor.layout} on {tensor.device}")


def reduce(parts: list[torch.Tensor], operation: str, out: torch.Tensor) -> None:
    """In the order of the list."""
    total = parts[0].clone()
    for part in parts[1:]:
        _REDUCE[operation](total, part)
    if operation == "AVG":
        total.div_(len(parts))
    out.copy_(total)
