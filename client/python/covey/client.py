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
from covey.table import Table
from covey.vector_table import Vectors

# Of updates and training examples with which a table may begin.
_COUNT_MAX = 2**61


def connect(scheduler: str | None = None, *, job: str | None = None, tls: str | None = None,
            labels: str | None = None, join_timeout: float | None = None,
            timeout: float | None = None) -> Client:
    """Joins the cluster as a client.

    Args:
        scheduler: "host:port" of the scheduler; several are separated by commas.
        job: the job's name.
        tls: folder of this program's certificate, of role client or worker, where the job has
            certificates.
        labels: topology of this machine, "zone/rack/host/device".
        join_timeout: longest wait for the scheduler, in seconds.
        timeout: deadline of operations that set none, in seconds.

    Raises:
        Unavailable: there is no scheduler at this address.
        FailedPrecondition: the folder `tls` holds no valid certificate of this job.
        InvalidArgument: a setting is wrong, or it is another job's scheduler.
    """
    return Client(interruptible(_native.client_connect, settings(
        scheduler=scheduler, job=job, tls=tls, labels=labels, join_deadline=join_timeout,
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

    def create_vectors(self, spec: TableSpec) -> Vectors:
        """As create_table, of vectors: its optimizer is covey.vectors(count).

        Raises InvalidArgument when it is not.
        """
        if spec.optimizer.kind != "VECTORS":
            raise InvalidArgument(f"table {spec.name!r} is not one of vectors; give it the optimizer "
                                  "covey.vectors(count)")
        created = self.create_table(spec)
        return Vectors(self, created._native, created.name, created.elements, created.shape)

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

    def find_vectors(self, name: str) -> Vectors:
        """Raises NotFound when there is none of this name, InvalidArgument when it is no table of
        vectors."""
        found = self.find_table(name)
        return Vectors(self, found._native, found.name, found.elements, found.shape)

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

    def pull_many(self, tables: Iterable[tuple[SparseTable, Any]],
                  out: Iterable[Any] | None = None, *, staleness: int | None = None,
                  max_age: float = 0.0, timeout: float | None = None) -> Handle:
        """Starts to read rows of several sparse tables, as of the embeddings of a model.

            users_rows, items_rows = client.pull_many([(users, user_keys),
                                                       (items, item_keys)]).wait().values

        Requests of all tables are in flight at once, and the handle is done when all have ended. Each
        table's rows are of one version per shard, not of one instant over tables. When tables fail,
        the exception is that of the first one, in their order, and names it; the others may have been
        read then.

        Args:
            tables: each table with its keys, or a batch of them. A table may come more than once.
            out: for each table float32, a row for each key; None = new arrays.
            staleness, max_age: of each table, as for Table.pull.
            timeout: deadline of all tables in seconds; None = the client's.

        Returns:
            The handle, whose result has the list of arrays as its `values`.
        """
        asked = [(self._own(table), table._batch_of(keys)) for table, keys in tables]
        rows = [table._new(batch) for table, batch in asked] if out is None else list(out)
        if len(rows) != len(asked):
            raise ValueError(f"out has {len(rows)} arrays for {len(asked)} tables; give one for each")
        arguments: list[Any] = []
        for (table, batch), memory in zip(asked, rows):
            arguments += (table._native, batch._native,
                          floats(memory, f"out of {table.name}", writable=True))
        native = _native.client_pull_rows_many(
            self._native, CONTRACT_DECIDES if staleness is None else staleness, 0, max_age,
            timeout_number(timeout), *arguments)
        return Handle(native, rows, rows)

    def push_many(self, tables: Iterable[tuple[SparseTable, Any, Any]], *, samples: int = 1,
                  wire: str | None = None, timeout: float | None = None) -> Handle:
        """Starts to apply gradients of rows of several sparse tables, as pull_many reads them.

        It is not one update: when tables fail, gradients of the others may have been applied.
        Gradients may be changed as soon as the call returns. The result's `rows_refused` is the sum
        over the tables.

        Args:
            tables: each table with its keys, or a batch of them, and float32, a row for each key. A
                table may come more than once.
            samples, wire: of each table, as for SparseTable.push.
            timeout: deadline of all tables in seconds; None = the client's.
        """
        arguments: list[Any] = []
        # A tensor's memory is given by its address: it stays until the call has ended.
        held = list(tables)
        for table, keys, gradient in held:
            arguments += (self._own(table)._native, table._batch_of(keys)._native,
                          floats(gradient, f"gradient of {table.name}", writable=False))
        return Handle(_native.client_push_rows_many(
            self._native, wire_number(wire, 0), samples, timeout_number(timeout), *arguments), None)

    def _own(self, table: SparseTable) -> SparseTable:
        if table._client is not self:
            raise InvalidArgument(f"table {table.name!r} is of another client; make one call for the "
                                  "tables of each client")
        return table

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
