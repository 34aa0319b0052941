# SPDX-License-Identifier: Apache-2.0
"""Sparse tables: rows that are found by keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import covey._native as _native
from covey._memory import CONTRACT_DECIDES, floats, keys_of, timeout_number, wire_number
from covey.errors import InvalidArgument
from covey.handle import Handle

if TYPE_CHECKING:
    from covey.client import Client

# By their numbers in covey.h.
_FILTER_RULES = ("kkt", "significance")


@dataclass(frozen=True)
class CacheCounts:
    """Keys of all pulls from a RowCache; one that repeats in a pull counts each time.

    Attributes:
        hits: keys answered from the cache.
        misses: keys of rows that were read from servers.
        stale: of the misses, keys of rows that were kept, but too old.
        rows: rows that are kept now.
    """

    hits: int
    misses: int
    stale: int
    rows: int


class RowCache:
    """Rows of a sparse table that were read before, for reads that tolerate stale rows; by
    SparseTable.cache.

    For serving, and for training where the network or the servers are the limit, and few keys are
    most of what is read. On one machine, where neither is, a plain pull is faster.

        cache = table.cache(max_age=1.0)
        rows = cache.pull(keys).wait().values           # len(keys) x width

    A row that is answered from the cache was the servers' at some time within `max_age`. The
    contract of the table bounds only what is read from servers. Any thread may use it.
    """

    def __init__(self, table: SparseTable, native: Any) -> None:
        self._table = table
        self._native = native

    def pull(self, keys: Any, out: Any = None, *, timeout: float | None = None) -> Handle:
        """Starts to read the rows of the keys into `out`, or into a new array.

        The handle is done at once where the cache has all rows.

        Args:
            keys: 64-bit integers as SparseTable takes them; no batch, which would be sorted for
                nothing. They may be changed as soon as the call returns.
            out: float32, a row for each key; after an error its contents are undefined.
            timeout: deadline in seconds; None = the client's.

        The result's version and age are those of rows that this pull has read from servers.
        """
        memory = keys_of(keys)
        if out is None:
            out = new_rows(count_of(memory), self._table.width)
        native = _native.row_cache_pull(
            self._table._client._native, self._native, memory, floats(out, "out", writable=True),
            timeout_number(timeout))
        return Handle(native, (out, self), out)

    def invalidate(self, keys: Any) -> None:
        """Lets the next pull of these keys read them from the servers; after a push, for example."""
        _native.row_cache_invalidate(self._table._client._native, self._native, keys_of(keys))

    @property
    def counts(self) -> CacheCounts:
        """Since the cache was made."""
        return CacheCounts(*_native.row_cache_count(self._table._client._native, self._native))


@dataclass(frozen=True)
class FilterCounts:
    """Rows of all pushes through a RowFilter; equal keys of a push count once.

    Attributes:
        pushed: rows that went with their own push.
        held_back: rows that did not.
        zero_pushed: of `pushed`, rows that were zero.
        zero_held_back: of `held_back`, rows that were zero.
        pushed_later: rows that had waited, and went without a gradient of their own.
        held: rows that wait now.
    """

    pushed: int
    held_back: int
    zero_pushed: int
    zero_held_back: int
    pushed_later: int
    held: int


class RowFilter:
    """Pushes that hold back the rows whose gradients are small, until they are larger; by
    SparseTable.filter.

    For training where the network or the servers are the limit.

        filter = table.filter("kkt", l1)
        rows = table.pull(batch).wait().values
        filter.push(batch, rows, gradients, samples=64).wait()
        filter.flush()                                  # before an evaluation, and at the end

    No gradient is lost: what waits is added to the next gradient of its key. Any thread may use it.
    """

    def __init__(self, table: SparseTable, native: Any) -> None:
        self._table = table
        self._native = native

    def push(self, keys: Any, rows: Any, gradient: Any, *, samples: int = 1,
             wire: str | None = None, timeout: float | None = None) -> Handle:
        """Starts to apply those gradients that are worth it now.

        Args:
            rows: float32, the rows on which the gradient was computed, as SparseTable.pull gives
                them.
            keys, gradient, samples, wire, timeout: as for SparseTable.push. Memory may be changed as
                soon as the call returns.
        """
        native = _native.row_filter_push(
            self._table._client._native, self._native, self._table._batch_of(keys)._native,
            floats(rows, "rows", writable=False), floats(gradient, "gradient", writable=False),
            wire_number(wire, 0), samples, timeout_number(timeout))
        return Handle(native, None)

    def flush(self, timeout: float | None = None) -> None:
        """Pushes all that is held back, and waits until it has arrived.

        Args:
            timeout: deadline of each push in seconds; None = the client's.
        """
        _native.row_filter_flush(self._table._client._native, self._native,
                                 timeout_number(timeout))

    @property
    def counts(self) -> FilterCounts:
        """Since the filter was made."""
        return FilterCounts(*_native.row_filter_count(self._table._client._native, self._native))


@dataclass(frozen=True)
class RowPiece:
    """Rows of a table, as RowReader gives them.

    The arrays are NumPy's, or memoryviews where it is not installed.

    Attributes:
        keys: of the rows, uint64.
        rows: float32, len(keys) x width; without NumPy, one row after the other.
        removed: keys that have no row any more, uint64; only of changes.
        shard: of the table, from which the piece comes.
        version: of the shard, in updates.
    """

    keys: Any
    rows: Any
    removed: Any
    shard: int
    version: int


class RowReader:
    """Reads all rows of a sparse table, whatever their keys, or those that have changed; by
    SparseTable.reader.

        reader = table.reader()
        for piece in reader:
            ...                                         # about 1 MiB: piece.keys, piece.rows
        later = table.reader(since=reader.token)        # only what has changed

    Each piece is of one version of its shard; those of one pass may be some updates apart. A
    program that applies all changes since a full reading (it forgets the rows of `removed`, then
    takes `rows`) holds what the servers hold. Raises OutOfRange when that is not known any more.
    """

    def __init__(self, table: SparseTable, native: Any) -> None:
        self._table = table
        self._native = native

    def __iter__(self) -> Iterator[RowPiece]:
        return self

    def __next__(self) -> RowPiece:
        piece = _native.row_reader_next(self._table._client._native, self._native)
        if piece is None:
            raise StopIteration
        shard, _, version, keys, rows, removed = piece
        return RowPiece(_array(keys, "Q"), _array(rows, "f", self._table.width),
                        _array(removed, "Q"), shard, version)

    @property
    def token(self) -> str:
        """Where a later reader goes on; a text to keep. Only after the last piece."""
        return _native.row_reader_token(self._table._client._native, self._native)


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
        return Batch(_native.batch_new(self._native, memory), count_of(memory))

    def cache(self, rows_max: int = 100_000, *, max_age: float = 1.0,
              max_updates: int | None = None) -> RowCache:
        """A cache of rows, whose pulls are answered from it where they can be.

        Args:
            rows_max: rows that are kept at most. Each takes its floats, rounded up to whole cache
                lines of 16, and about 21 bytes more.
            max_age: a row that was read longer ago than these seconds is read again; more than 0.
            max_updates: a row whose shard has had more updates since is read again, as far as
                earlier pulls of the cache have seen; None = any number.
        """
        return RowCache(self, _native.row_cache_new(
            self._client._native, self._native, rows_max, max_age,
            2 ** 64 - 1 if max_updates is None else max_updates))

    def filter(self, rule: str, threshold: float, *, rows_max: int = 1_000_000,
               pieces_max: int = 4) -> RowFilter:
        """A filter of pushes, which holds back rows whose gradients are small.

        Gradients count as the optimizer takes them: divided by the samples, and with what has
        waited before.

        Args:
            rule: "kkt": rows of zeros wait while all elements of their gradients are below the
                threshold; for FTRL, whose l1 it is, divided by the number of programs that push.
                "significance": rows wait while the norm of their gradients is below the threshold
                times their own norm; the threshold falls with 1 / sqrt(pushes).
            threshold: at least 0, where nothing waits.
            rows_max: rows that are held back at most; beyond it the oldest go with the next push.
                Each takes its floats and about 60 bytes.
            pieces_max: pushes over which a gradient that has waited goes, 1 to 16, because FTRL and
                Adagrad add up squares; 1 suits SGD.
        """
        if rule not in _FILTER_RULES:
            raise InvalidArgument(
                f"a filter with the rule {rule!r}; choose one of {', '.join(_FILTER_RULES)}")
        return RowFilter(self, _native.row_filter_new(
            self._client._native, self._native, _FILTER_RULES.index(rule), threshold, rows_max,
            pieces_max))

    def reader(self, since: str | None = None, *, max_age: float = 0.0,
               timeout: float | None = None) -> RowReader:
        """Reads all rows in pieces, ascending by a hash of the key.

        Args:
            since: RowReader.token of an earlier reading: only what has changed since.
            max_age: of each piece, as for pull.
            timeout: deadline of each piece in seconds; None = the client's.
        """
        return RowReader(self, _native.row_reader_new(
            self._client._native, self._native, "" if since is None else since, max_age,
            timeout_number(timeout)))

    def pull(self, keys: Any, out: Any = None, *, min_version: int = 0,
             staleness: int | None = None, max_age: float = 0.0,
             timeout: float | None = None) -> Handle:
        """Starts to read the rows of the keys into `out`, or into a new array.

        A row that no push has made yet reads as its first values; no pull makes one.

        Args:
            keys: as above, or a batch.
            out: float32, a row for each key; after an error it may have some of the rows.
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
            wire: "float32", "float16", "bfloat16", "scaled-float16", "int8" or "float8"; in the
                last three each row has scales of its own.
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
        return new_rows(len(batch), self.width)


def _array(memory: bytearray, kind: str, width: int | None = None) -> Any:
    """The elements in this memory, of a type of the module array."""
    try:
        import numpy
    except ImportError:
        view: Any = memoryview(memory)
        return view.cast(kind)
    array = numpy.frombuffer(memory, {"Q": numpy.uint64, "f": numpy.float32}[kind])
    return array if width is None else array.reshape(-1, width)


def count_of(keys: Any) -> int:
    """How many keys there are in what keys_of() has returned."""
    if isinstance(keys, tuple):
        count: int = keys[1]
        return count
    return memoryview(keys).nbytes // 8


def new_rows(count: int, width: int) -> Any:
    import numpy  # here, because programs without NumPy pass `out`
    return numpy.empty((count, width), numpy.float32)
