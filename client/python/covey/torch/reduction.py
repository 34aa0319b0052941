# SPDX-License-Identifier: Apache-2.0
"""Tensors as what a Covey group carries and combines, and the reduction of all others here."""

from __future__ import annotations

from typing import Any, Callable

import torch
from torch.distributed import ReduceOp


# What a group combines by itself: types of elements, and its names of operations.
_GROUP_TYPES = (torch.float32, torch.float64, torch.int32, torch.int64)
_GROUP_OPERATIONS = {"SUM": "sum", "AVG": "sum", "PRODUCT": "product", "MIN": "min", "MAX": "max"}


def group_operation(operation: str, tensor: torch.Tensor) -> str | None:
    """What the group calls the operation; None if it cannot combine such tensors. "AVG" is a sum that
    is divided at the end, which integers do not allow."""
    if tensor.dtype not in _GROUP_TYPES or tensor.numel() == 0:
        return None
    if operation == "AVG" and not tensor.is_floating_point():
        return None
    return _GROUP_OPERATIONS.get(operation)


def flat(tensor: torch.Tensor) -> torch.Tensor:
    """The elements in a row, in host memory; in place where the tensor's memory has them so."""
    return tensor.detach().resolve_conj().resolve_neg().contiguous().view(-1).cpu()


def restore(data: torch.Tensor, tensor: torch.Tensor) -> None:
    """Writes what flat(tensor) has become to the tensor."""
    if tensor.device != data.device or data.data_ptr() != tensor.data_ptr():
        tensor.copy_(data.view(tensor.shape))


def _minimum(sum_: torch.Tensor, part: torch.Tensor) -> None:
    torch.minimum(sum_, part, out=sum_)


def _maximum(sum_: torch.Tensor, part: torch.Tensor) -> None:
    torch.maximum(sum_, part, out=sum_)


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
    if tensor.layout != torch.strided:
        raise NotImplementedError(f"the backend covey takes dense tensors, and this one is "
                                  f"{tensor.layout}; call .to_dense() first")


def reduce(parts: list[torch.Tensor], operation: str, out: torch.Tensor) -> None:
    """In the order of the list."""
    total = parts[0].clone()
    for part in parts[1:]:
        _REDUCE[operation](total, part)
    if operation == "AVG":
        total.div_(len(parts))
    out.copy_(total)
