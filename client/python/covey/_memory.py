# SPDX-License-Identifier: Apache-2.0
"""The memory of arrays: found without a copy, and kept while an operation uses it."""

from __future__ import annotations

import sys
from typing import Any

from covey.errors import InvalidArgument

# Types of elements that a group can combine, and everything else; numbers as in covey.h.
_TYPES = {"float32": 0, "float64": 1, "int32": 2, "int64": 3}
_BYTE = 4
_OPERATIONS = {"sum": 0, "product": 1, "min": 2, "max": 3}

# A staleness that stands for the bound of the table's contract.
CONTRACT_DECIDES = -1

WIRE_FORMATS = {"float32": 0, "float16": 1, "bfloat16": 2, "int8": 3, "scaled-float16": 4,
                "float8": 5, "topk": 6}


def wire_number(wire: str | None, absent: int, argument: str = "wire") -> int:
    """The number of a wire format. `argument` is the name of the caller's, for the error."""
    if wire is None:
        return absent
    try:
        return WIRE_FORMATS[wire]
    except KeyError:
        raise ValueError(f"{argument} is {wire!r}; use one of {', '.join(WIRE_FORMATS)}") from None


def operation_number(op: str) -> int:
    """The number of what combines the values of the members."""
    try:
        return _OPERATIONS[op]
    except KeyError:
        raise ValueError(f"op is {op!r}; use one of {', '.join(_OPERATIONS)}") from None


def combinable(array: Any, argument: str, *, writable: bool) -> tuple[Any, int, int]:
    """The same as floats(), for elements that a group can combine; the number of their type; and how
    many there are."""
    given, type_, count = _elements(array, argument, writable)
    if type_ == _BYTE:
        name = getattr(array, "dtype", None) or memoryview(array).format
        raise TypeError(f"{argument} needs {', '.join(_TYPES)}, got {name}; convert it")
    return given, type_, count


def movable(array: Any, argument: str, parts: int = 1) -> tuple[Any, int]:
    """The same for elements of any type, which are to be cut into so many parts."""
    given, type_, count = _elements(array, argument, writable=True)
    if type_ == _BYTE and count % parts != 0:
        raise InvalidArgument(f"{argument} has {count} elements for {parts} members; only "
                              f"{', '.join(_TYPES)} can be cut into parts that differ")
    return given, type_


def _elements(array: Any, argument: str, writable: bool) -> tuple[Any, int, int]:
    """What the native module takes, the number of the type, and how many elements there are."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        _check_layout(array, argument)
        type_ = _TYPES.get(str(array.dtype).removeprefix("torch."), _BYTE)
        bytes_ = array.numel() * array.element_size()
        return (array.data_ptr(), bytes_), type_, array.numel()
    view = memoryview(array)
    if writable and view.readonly:
        raise TypeError(f"{argument} is read-only; pass an array that may be written")
    return array, _type_of(view.format.lstrip("@=<"), view.itemsize), view.nbytes // view.itemsize


def _type_of(format_: str, bytes_: int) -> int:
    if format_ in ("i", "l", "q"):
        return _TYPES[f"int{8 * bytes_}"]
    return {"f": _TYPES["float32"], "d": _TYPES["float64"]}.get(format_, _BYTE)


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


def keys_of(keys: Any) -> Any:
    """What the native module takes for keys, 64-bit integers, and what keeps their memory."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(keys, torch.Tensor):
        if keys.dtype != torch.int64:
            raise TypeError(f"keys need int64, got {keys.dtype}; convert with .long()")
        _check_layout(keys, "keys")
        return (keys.data_ptr(), keys.numel())
    return keys


def _tensor(torch: Any, tensor: Any, argument: str) -> Any:
    if tensor.dtype != torch.float32:
        raise TypeError(f"{argument} needs float32, got {tensor.dtype}; convert with .float()")
    _check_layout(tensor, argument)
    return (tensor.data_ptr(), tensor.numel())


def _check_layout(tensor: Any, argument: str) -> None:
    if tensor.device.type != "cpu":
        raise TypeError(f"{argument} is on {tensor.device}; copy it with .cpu()")
    if not tensor.is_contiguous():
        raise TypeError(f"{argument} is not contiguous; pass {argument}.contiguous()")


def timeout_number(timeout: float | None) -> float:
    """Seconds of an operation's deadline; 0 is the default of the client."""
    if timeout is None:
        return 0.0
    if timeout <= 0:
        raise ValueError(f"timeout is {timeout} seconds; give more than 0")
    return float(timeout)
