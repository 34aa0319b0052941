# SPDX-License-Identifier: Apache-2.0
"""The memory of arrays: found without a copy, and kept while an operation uses it."""

from __future__ import annotations

import sys
from typing import Any

WIRE_FORMATS = {"float32": 0, "float16": 1, "bfloat16": 2, "int8": 3}


def wire_number(wire: str | None, absent: int) -> int:
    """The number of a wire format."""
    if wire is None:
        return absent
    try:
        return WIRE_FORMATS[wire]
    except KeyError:
        raise ValueError(f"wire is {wire!r}; use one of {', '.join(WIRE_FORMATS)}") from None


def floats(array: Any, argument: str, *, writable: bool) -> Any:
    """What the native module takes for this array, and what keeps its memory: one object or tuple.

    A tensor of PyTorch is given as (address, elements), because it has no buffer. Everything else
    must have one; the native module checks its type and layout.
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        return _tensor(torch, array, argument)
    if writable and getattr(getattr(array, "flags", None), "writeable", True) is False:
        raise TypeError(f"{argument} is read-only; pass an array that may be written")
    return array


def _tensor(torch: Any, tensor: Any, argument: str) -> Any:
    if tensor.dtype != torch.float32:
        raise TypeError(f"{argument} needs float32, got {tensor.dtype}; convert with .float()")
    if tensor.device.type != "cpu":
        raise TypeError(f"{argument} is on {tensor.device}; copy it with .cpu()")
    if not tensor.is_contiguous():
        raise TypeError(f"{argument} is not contiguous; pass {argument}.contiguous()")
    return (tensor.data_ptr(), tensor.numel())


def timeout_number(timeout: float | None) -> float:
    """Seconds of an operation's deadline; 0 is the default of the client."""
    if timeout is None:
        return 0.0
    if timeout <= 0:
        raise ValueError(f"timeout is {timeout} seconds; give more than 0")
    return float(timeout)
