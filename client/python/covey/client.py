# SPDX-License-Identifier: Apache-2.0
"""Reads and changes parameters, without a group."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Iterable

import covey._native as _native
from covey._lifetime import remember, settings
from covey._memory import CONTRACT_DECIDES, floats, timeout_number, wire_number
from covey._waiting import interruptible
from covey.definitions import SparseTableSpec, TableSpec
from covey.errors import InvalidArgument
from covey.handle import Handle, Result
from covey.sparse import SparseTable

# Of updates and training examples with which a table may begin.
_COUNT_MAX = 2**61


def connect(scheduler: str | None = None, *, job: str | None = None, labels: str | None = None,
            join_timeout: float | None = None, timeout: float | None = None) -> Client:
    """Joins the cluster as a client.

    Args:
        scheduler: "host:port" of the scheduler; several are separated by commas.
        job: the job's name.
        labels: topology of this machine, "zone/rack/host/device".
        join_timeout: longest wait for the scheduler, in seconds.
        timeout: deadline of operations that set none, in seconds.

    Raises:
        Unavailable: there is no scheduler at this address.
        InvalidArgument: a setting is wrong, or it is another job's scheduler.
    """
    return Client(interruptible(_native.client_connect, settings(
        scheduler=scheduler, job=job, labels=labels, join_deadline=join_timeout,
        operation_deadline=timeout)))


@dataclass(frozen=True)
class TableState:
    """Values and optimizer state with which a table is to begin, as Table.pull_state reads them.

    Attributes:
        values: float32, 1 + slots times the table: row 0 has the values; the others have the
            optimizer's slots, in the order of its formula: for Adam the running mean and the mean
            square.
        version: updates that have made the values, at most 2**61.
        samples: training examples in them, at most 2**61; schedules go on from there.
    """

    values: Any
    version: int
    samples: int = 0


def _arrays_of(table: Table, initial: Any) -> list[Any]:
    """Arrays, whether slots are among them, updates and samples, for the call of _native."""
    if not isinstance(initial, (Result, TableState)):
        return [floats(initial, f"values of {table.name}", writable=False), 0, 0, 0]
    for count, number in (("version", initial.version), ("number of samples", initial.samples)):
        if not 0 <= number <= _COUNT_MAX:
            raise InvalidArgument(f"initialize table {table.name!r}: its {count} is {number}; give "
                                  "at least 0 and at most 2**61")
    return [floats(initial.values, f"values and slots of {table.name}", writable=False), 1,
            initial.version, initial.samples]


class Client:
    """A program's access to the tables of a job. Any thread may use it; made by connect()."""

    def __init__(self, native: Any) -> None:
        self._native = native
        remember(self)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leaves the cluster; operations in progress end with Cancelled. Up to two seconds."""
        _native.client_close(self._native)

    def create_table(self, spec: TableSpec) -> Table:
        """Creates the table, or returns it when it exists with an equal definition.

        Raises AlreadyExists when it exists with another definition.
        """
        native, name, elements, _ = interruptible(_native.client_create_table, self._native,
                                                  spec.to_json())
        return Table(self, native, name, elements, spec.shape)

    def create_sparse_table(self, spec: SparseTableSpec) -> SparseTable:
        """As create_table, of rows that are found by keys."""
        native, name, _, width = interruptible(_native.client_create_table, self._native,
                                               spec.to_json())
        return SparseTable(self, native, name, width)

    def find_sparse_table(self, name: str) -> SparseTable:
        """Raises NotFound when there is none of this name, InvalidArgument when it is dense."""
        native, found, _, width = interruptible(_native.client_find_table, self._native, name)
        if width == 0:
            raise InvalidArgument(f"table {found!r} is dense; use find_table")
        return SparseTable(self, native, found, width)

    def find_table(self, name: str) -> Table:
        """Raises NotFound when there is none of this name, InvalidArgument when it is sparse."""
        native, found, elements, width = interruptible(_native.client_find_table, self._native,
                                                       name)
        if width != 0:
            raise InvalidArgument(f"table {found!r} is sparse; use find_sparse_table")
        shape = next((tuple(int(extent) for extent in spec["shape"])
                      for spec in self.list_tables() if spec["name"] == found), (elements,))
        return Table(self, native, found, elements, shape)

    def list_tables(self) -> list[dict[str, Any]]:
        """The definitions of all tables."""
        definitions: list[dict[str, Any]] = json.loads(
            interruptible(_native.client_list_tables, self._native))
        return definitions

    def initialize(self, values: Iterable[tuple[Table, Any]], timeout: float | None = None) -> bool:
        """Gives tables with initializer="given" the values, and perhaps the state, they begin with.

        Of all calls for the same tables, in all programs, one gives the values of all of them; the
        others wait until it has finished. When it fails, or its program dies, another one does.
        Until a table has its values, pushes and pulls of it wait, and fail with DeadlineExceeded when
        their own time is over.

        Args:
            values: each table with float32, as many elements as the table. Or with what
                pull_state of a table with an equal definition has read, or a TableState: then its
                optimizer, version and samples go on from there.
            timeout: longest wait in seconds; None = the client's.

        Returns:
            Whether this call gave the values of the tables that had none.

        Raises:
            FailedPrecondition: the initializer of a table is another one.
            InvalidArgument: values or slots do not fit the table and its optimizer, are not finite,
                or a table is named twice.
            Unavailable: another call has not finished in time; names its program.
            DeadlineExceeded: this call has not; large models need a longer `timeout`.
        """
        arguments: list[Any] = []
        # A tensor's memory is given by its address: it stays until the call has ended, also where
        # an iterator makes it.
        held = list(values)
        for table, initial in held:
            arguments += table._native, *_arrays_of(table, initial)
        if not arguments:
            return False
        given: bool = interruptible(_native.client_initialize_tables, self._native,
                                    timeout_number(timeout), *arguments)
        return given

    def drop_table(self, name: str) -> None:
        """Drops values and history. Raises NotFound."""
        interruptible(_native.client_drop_table, self._native, name)

    def set_contract(self, name: str, contract: str) -> None:
        """Changes the contract of a table in use: "bsp", "ssp:2", "async", "buffered"."""
        interruptible(_native.client_set_contract, self._native, name, contract)

    def flush(self, timeout: float = 60.0) -> None:
        """Waits until every push that was started before is as durable as its table requires."""
        interruptible(_native.client_flush, self._native, timeout)

    def barrier(self, name: str, participants: int, timeout: float = 60.0) -> None:
        """Returns when this many nodes wait under this name."""
        interruptible(_native.client_barrier, self._native, name, participants, timeout)

    def status(self) -> dict[str, Any]:
        """The data behind `covey status`."""
        status: dict[str, Any] = json.loads(interruptible(_native.client_status, self._native))
        return status


class Table:
    """A table of a client.

    Attributes:
        name: its name.
        shape: its extents.
        elements: their product.
        slots: arrays of state that its optimizer keeps on the servers.
    """

    def __init__(self, client: Client, native: Any, name: str, elements: int,
                 shape: tuple[int, ...]) -> None:
        self._client = client
        self._native = native
        self.name = name
        self.elements = elements
        self.shape = shape
        self.slots: int = _native.table_slots(native)

    def __repr__(self) -> str:
        return f"<covey.Table {self.name!r} {self.shape}>"

    def initialize(self, values: Any, timeout: float | None = None) -> bool:
        """As Client.initialize, for this table alone."""
        return self._client.initialize([(self, values)], timeout)

    def push(self, gradient: Any, *, samples: int = 1, wire: str | None = None,
             timeout: float | None = None) -> Handle:
        """Starts to apply a gradient, which is the SUM over `samples` training examples.

        The array must not change until the handle is done. It is applied at most once, however
        often it is sent.

        Args:
            gradient: float32, as many elements as the table.
            samples: examples behind it; 1 applies it as it is.
            wire: "float32", "float16", "bfloat16" or "int8".
            timeout: deadline in seconds; None = the client's.
        """
        memory = floats(gradient, "gradient", writable=False)
        native = _native.client_push(self._client._native, self._native, memory,
                                     wire_number(wire, 0), samples, timeout_number(timeout))
        return Handle(native, gradient)

    def pull(self, out: Any = None, *, min_version: int = 0, staleness: int | None = None,
             max_age: float = 0.0, timeout: float | None = None) -> Handle:
        """Starts to read the values into `out`, or into a new array of the table's shape.

        Args:
            out: float32; untouched until the handle is done.
            min_version: the least version of every shard.
            staleness: replaces the contract's bound.
            max_age: longest time since a shard's last update, in seconds; 0 = any.
            timeout: as for push.
        """
        out = self._new() if out is None else out
        memory = floats(out, "out", writable=True)
        native = _native.client_pull(
            self._client._native, self._native, memory,
            CONTRACT_DECIDES if staleness is None else staleness, min_version, max_age,
            timeout_number(timeout))
        return Handle(native, out, out)

    def pull_state(self, out: Any = None, *, timeout: float | None = None) -> Handle:
        """Starts to read values and optimizer state into `out`, or into a new array.

        Row 0 has the values; the others have the optimizer's slots, in the order of its formula:
        for Adam the running mean and the mean square. `version` of the result is the number of
        updates, `samples` that of training examples. Each shard's rows are of one version; while
        the table trains, shards may differ in it.

        Args:
            out: float32, 1 + slots times the table; untouched until the handle is done.
            timeout: as for push.
        """
        if out is None:
            import numpy  # here, because programs without NumPy pass `out`
            out = numpy.empty((1 + self.slots, *self.shape), numpy.float32)
        native = _native.client_pull_state(
            self._client._native, self._native, floats(out, "out", writable=True),
            CONTRACT_DECIDES, 0, 0.0, timeout_number(timeout))
        return Handle(native, out, out)

    def push_pull(self, gradient: Any, out: Any = None, *, samples: int = 1,
                  wire: str | None = None, min_version: int = 0, staleness: int | None = None,
                  max_age: float = 0.0, timeout: float | None = None) -> Handle:
        """push and pull in one round trip: the gradient is applied, then the values are read."""
        out = self._new() if out is None else out
        deadline = timeout_number(timeout)
        native = _native.client_push_pull(
            self._client._native, self._native, floats(gradient, "gradient", writable=False),
            floats(out, "out", writable=True), wire_number(wire, 0), samples, deadline,
            CONTRACT_DECIDES if staleness is None else staleness, min_version, max_age, deadline)
        return Handle(native, (gradient, out), out)

    def _new(self) -> Any:
        import numpy  # here, because programs without NumPy pass `out`
        return numpy.empty(self.shape, numpy.float32)
