# SPDX-License-Identifier: Apache-2.0
"""Sparse tables: rows that are found by keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import covey._native as _native
from covey._memory import CONTRACT_DECIDES, floats, keys_of, timeout_number, wire_number
from covey.handle import Handle

if TYPE_CHECKING:
    from covey.client import Client


class Batch:
    """The keys of a mini-batch, sorted and divided among the servers once; by SparseTable.batch.

    len() is the number of keys as they were given.
    """

    __slots__ = ("_native", "_count")

    def __init__(self, native: Any, count: int) -> None:
        self._native = native
        self._count = count

    def __len__(self) -> int:
        return self._count


class SparseTable:
    """A table of rows that are found by 64-bit keys.

    Keys are NumPy arrays of 64-bit integers, signed or not, anything with such a buffer, or int64
    tensors on the CPU. They come in any order and may repeat: a pull gives a row for each, and a
    push adds up the gradients of equal keys.

        rows = table.pull(keys).wait().values           # len(keys) x width
        table.push(keys, gradients, samples=64).wait()

    The keys of a mini-batch that is pulled and pushed are sorted once where both take the same
    batch:

        batch = table.batch(keys)

    Attributes:
        name: its name.
        width: elements of a row.
    """

    def __init__(self, client: Client, native: Any, name: str, width: int) -> None:
        self._client = client
        self._native = native
        self.name = name
        self.width = width

    def __repr__(self) -> str:
        return f"<covey.SparseTable {self.name!r} {self.width}>"

    def batch(self, keys: Any) -> Batch:
        """For one mini-batch; any number of operations may use it."""
        memory = keys_of(keys)
        native = _native.batch_new(self._native, memory)
        if isinstance(memory, tuple):
            return Batch(native, memory[1])
        view = memoryview(memory)
        return Batch(native, view.nbytes // 8)

    def pull(self, keys: Any, out: Any = None, *, min_version: int = 0,
             staleness: int | None = None, max_age: float = 0.0,
             timeout: float | None = None) -> Handle:
        """Starts to read the rows of the keys into `out`, or into a new array.

        A row that no push has made yet reads as its first values; no pull makes one.

        Args:
            keys: as above, or a batch.
            out: float32, a row for each key; untouched until the handle is done.
            min_version, staleness, max_age, timeout: as for Table.pull.
        """
        batch = self._batch_of(keys)
        out = self._new(batch) if out is None else out
        native = _native.client_pull_rows(
            self._client._native, self._native, batch._native,
            floats(out, "out", writable=True),
            CONTRACT_DECIDES if staleness is None else staleness, min_version, max_age,
            timeout_number(timeout))
        return Handle(native, out, out)

    def push(self, keys: Any, gradient: Any, *, samples: int = 1, wire: str | None = None,
             timeout: float | None = None) -> Handle:
        """Starts to apply the gradients of rows, the SUM over `samples` training examples.

        `gradient` may be changed as soon as the call returns.

        Args:
            keys: as above, or a batch.
            gradient: float32, a row for each key.
            samples: examples behind it; 1 applies it as it is.
            wire: "float32", "float16" or "bfloat16".
            timeout: deadline in seconds; None = the client's.
        """
        native = _native.client_push_rows(
            self._client._native, self._native, self._batch_of(keys)._native,
            floats(gradient, "gradient", writable=False), wire_number(wire, 0), samples,
            timeout_number(timeout))
        return Handle(native, None)

    def push_pull(self, keys: Any, gradient: Any, out: Any = None, *, samples: int = 1,
                  wire: str | None = None, min_version: int = 0, staleness: int | None = None,
                  max_age: float = 0.0, timeout: float | None = None) -> Handle:
        """push and pull in one round trip: gradients are applied, then the rows are read."""
        batch = self._batch_of(keys)
        out = self._new(batch) if out is None else out
        deadline = timeout_number(timeout)
        native = _native.client_push_pull_rows(
            self._client._native, self._native, batch._native,
            floats(gradient, "gradient", writable=False), floats(out, "out", writable=True),
            wire_number(wire, 0), samples, deadline,
            CONTRACT_DECIDES if staleness is None else staleness, min_version, max_age, deadline)
        return Handle(native, out, out)

    def _batch_of(self, keys: Any) -> Batch:
        return keys if isinstance(keys, Batch) else self.batch(keys)

    def _new(self, batch: Batch) -> Any:
        import numpy  # here, because programs without NumPy pass `out`
        return numpy.empty((len(batch), self.width), numpy.float32)
