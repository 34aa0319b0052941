# SPDX-License-Identifier: Apache-2.0
"""Operations in progress."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generator

import covey._native as _native
from covey import _asyncio

# Operations whose handles were dropped before they had ended, with their memory.
_dropped: list[tuple[Any, Any]] = []


@dataclass(frozen=True)
class Result:
    """The result of an operation, over all shards of the table.

    Attributes:
        values: the array that a pull has filled, or a collective has changed; the answers of
            Vectors.ask; None for a push.
        version: lowest version among the shards.
        staleness: most updates by others between the values that the gradient was computed on and
            its application.
        age: seconds since the update of the shard that was updated longest ago.
        duplicate: a shard already had the push, because a retry crossed its reply.
        discarded: a shard found the push too stale for the table's contract.
        durable: every shard holds the push as durably as the table requires.
        samples: of pull_state: training examples behind the table.
        rows_refused: of a push to a sparse table that holds as many rows as it may (rows_max): rows
            that its update did not make, and whose gradients are lost. It is an error unless the
            table has when_full="skip" or "evict".
    """

    values: Any
    version: int
    staleness: int
    age: float
    duplicate: bool
    discarded: bool
    durable: bool
    samples: int = 0
    rows_refused: int = 0


class Handle:
    """An operation in progress; `await handle` works, too.

    Any thread may use it. It keeps the arrays of the operation alive until the operation has ended,
    also when the handle is dropped before.
    """

    __slots__ = ("_native", "_kept", "_values")

    def __init__(self, native: Any, kept: Any, values: Any = None) -> None:
        self._native = native
        self._kept = kept
        self._values = values

    def done(self) -> bool:
        """Whether the operation has ended. Does not block."""
        return _native.handle_done(self._native)

    def wait(self, timeout: float | None = None) -> Result:
        """Waits until the operation has ended, or for `timeout` seconds.

        Raises what the operation ended with. DeadlineExceeded while done() is false: it continues.
        Ctrl-C works.
        """
        (version, staleness, age, duplicate, discarded, durable, samples,
         refused) = _native.handle_wait(self._native, -1.0 if timeout is None else timeout)
        return Result(self._values, version, staleness, age, bool(duplicate), bool(discarded),
                      bool(durable), samples, refused)

    def __await__(self) -> Generator[Any, None, Result]:
        if not self.done():
            yield from _asyncio.until_done(self._native).__await__()
        return self.wait()

    def __del__(self) -> None:
        # Also when __init__ was not reached, and while the interpreter ends.
        native = getattr(self, "_native", None)
        if native is None or _native is None or _native.handle_done(native):
            return
        _dropped[:] = [entry for entry in _dropped if not _native.handle_done(entry[0])]
        _dropped.append((native, self._kept))
