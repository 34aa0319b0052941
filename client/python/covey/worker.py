# SPDX-License-Identifier: Apache-2.0
"""A process that trains as one of many, and its group."""

from __future__ import annotations

import contextlib
import logging
import weakref
from typing import Any, Iterator, Sequence

import covey._native as _native
from covey import launch as _launch
from covey._lifetime import remember, settings
from covey._memory import combinable, floats, movable, operation_number, wire_number
from covey._waiting import interruptible
from covey.client import Client, connect
from covey.definitions import SparseTableSpec
from covey.errors import InvalidArgument
from covey.handle import Handle
from covey.local_rows import LocalRows

_log = logging.getLogger("covey")


def join(scheduler: str | None = None, *, job: str | None = None, rank: int | None = None,
         tls: str | None = None, labels: str | None = None, data_host: str | None = None,
         insecure: bool | None = None, transport: str | None = None, metrics: str | None = None,
         join_timeout: float | None = None, form_timeout: float | None = None,
         timeout: float | None = None) -> Worker:
    """Joins the cluster as a worker; returns when the scheduler has formed the groups.

    Args:
        scheduler: "host:port" of the scheduler; several are separated by commas.
        job: the job's name.
        rank: the rank among all workers; None = from COVEY_RANK, otherwise from torchrun, MPI,
            Slurm, Kubernetes and others (covey.launch), otherwise any.
        tls: folder of this worker's certificate, where the job has certificates.
        labels: topology of this machine, "zone/rack/host/device".
        data_host: address at which other members reach this machine.
        insecure: listen without `tls` although other hosts reach `data_host`.
        transport: "auto", "tcp" or "ipc".
        metrics: "host:port" at which this process's metrics and probes answer over plain HTTP; port
            0 = any free one, which the log names. Each worker of a host needs a port of its own.
        join_timeout: longest wait for the scheduler, and for a rank whose holder is not known to be
            dead, in seconds.
        form_timeout: longest wait for the group to form, in seconds.
        timeout: deadline of collectives and of each tensor of a step, in seconds.

    Raises:
        Unavailable: there is no scheduler at this address, or `metrics` cannot be listened at.
        DeadlineExceeded: names the missing members.
        AlreadyExists: another process has held the rank until `join_timeout`; names it.
        FailedPrecondition: the folder `tls` holds no valid certificate of this worker; or other
            hosts reach `data_host` or `metrics`, and there is neither `tls` nor `insecure`.
        PermissionDenied: the certificate is not that of such a worker.
        InvalidArgument: a setting is wrong, or the launcher's variables contradict each other.
    """
    try:
        launch = _launch.detect()
    except InvalidArgument:
        if rank is None:
            raise
        launch = _launch.Launch()
    for note in launch.notes:
        _log.warning(note)
    if rank is None:
        rank = launch.rank
    native = interruptible(_native.worker_join, settings(
        scheduler=scheduler, job=job, rank=rank, tls=tls, labels=labels, data_host=data_host,
        insecure=insecure, transport=transport, metrics=metrics, join_deadline=join_timeout,
        form_deadline=form_timeout, operation_deadline=timeout))
    worker = Worker(native, launch, scheduler, job, tls)
    if launch.size not in (None, worker.size):
        _log.warning("%s has started %d processes, and the job has %d workers now; start "
                     "covey_scheduler with --groups and --workers for as many", launch.launcher,
                     launch.size, worker.size)
    return worker


class Worker:
    """A member of a group. One call at a time, from any thread; made by join().

    Leaving a `with` block leaves the cluster.

    Attributes:
        group: the members that synchronize every step.
        launch: what has started this process (covey.launch.Launch).
    """

    def __init__(self, native: Any, launch: _launch.Launch, scheduler: str | None,
                 job: str | None, tls: str | None) -> None:
        self._native = native
        self.group = Group(native)
        self.launch = launch
        self._scheduler = scheduler
        self._job = job
        self._tls = tls
        # What has to be closed before it.
        self._parts: weakref.WeakSet[Any] = weakref.WeakSet()
        remember(self)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leaves the cluster: up to some seconds, until received pushes are durable."""
        for part in list(self._parts):
            part.close()
        _native.worker_leave(self._native)

    @property
    def rank(self) -> int:
        """Among all workers of all groups."""
        return _native.worker_place(self._native)[0]

    @property
    def size(self) -> int:
        """Workers in all groups, when this worker joined."""
        return _native.worker_place(self._native)[1]

    @property
    def local_rank(self) -> int:
        """Among the workers on this machine, as its launcher counts: the GPU to use. 0 if none."""
        return self.launch.local_rank

    @property
    def groups(self) -> int:
        """Groups, when this worker joined."""
        return _native.worker_place(self._native)[5]

    @property
    def initial_groups(self) -> int:
        """The groups that the job began with: the same on all workers."""
        return _native.worker_place(self._native)[6]

    def connect(self, *, timeout: float | None = None) -> Client:
        """A client of the same job, for tables beside those of steps; close it before the worker.

        Args:
            timeout: deadline of its operations that set none, in seconds.
        """
        return connect(self._scheduler, job=self._job, tls=self._tls, timeout=timeout)

    def local_rows(self, spec: SparseTableSpec, *, rows_max: int = 1_000_000) -> LocalRows:
        """Creates the sparse table, or takes an equal one, for steps of this worker's own.

        Args:
            spec: with contract="local:H" and inner_optimizer.
            rows_max: rows of a round at most, those that are only read included. Rows of earlier
                rounds keep the inner optimizer's state as long as there is room for them.

        Raises:
            InvalidArgument: the contract of the table is another one.
            FailedPrecondition: the group has other members, who would have to push as one; start as
                many groups as workers.
        """
        native = interruptible(_native.local_rows_open, self._native, spec.to_json(), rows_max)
        rows = LocalRows(self, native, spec.name)
        self._parts.add(rows)
        return rows

    def barrier(self, name: str, timeout: float = 60.0) -> None:
        """Returns when all workers have called it with this name as often as this one."""
        interruptible(_native.worker_barrier, self._native, name, timeout)

    def request_drain(self) -> None:
        """Asks to leave: calls end with Cancelled after the group's next step. Does not block."""
        _native.worker_request_drain(self._native)

    @contextlib.contextmanager
    def away(self, reason: str, at_most: float = 1800.0) -> Iterator[None]:
        """A block in which this program takes no steps: it evaluates, saves or compiles.

            if worker.rank == 0:
                with worker.away("evaluation", at_most=300):
                    evaluate(model)

        Until the block ends, and for `at_most` seconds at the most, the members of its group wait
        without errors, and the worker does not count as slow. Its death is noticed as ever. The
        others learn of it within a second, so a `timeout` of join() below that may pass before.

        The block is over sooner when the program submits a gradient or starts a collective. A
        block inside another one ends both.

        Args:
            reason: for people, as in `covey status`: 1 to 256 printable characters of ASCII.
            at_most: in seconds, at most 3600; a longer one is announced again.
        """
        _native.worker_set_away(self._native, reason, at_most)
        try:
            yield
        finally:
            _native.worker_set_back(self._native)


class Group:
    """Collectives among the workers that synchronize every step.

    All members make the same calls in the same order, with arrays of the same types and sizes. Arrays
    are contiguous, used in place, and belong to the collective until its handle is done; after an
    error their contents are undefined. `out` keeps the input, so that a call that failed can be
    repeated after refresh(): the input is read before the call returns. Values are
    combined in a fixed order: the same bits on every member, and on every run with the same
    algorithm. `wire`, any but "topk", is for sums and copies of float32; everything else travels
    as it is.
    """

    def __init__(self, native: Any) -> None:
        self._native = native

    @property
    def id(self) -> int:
        """The group's number."""
        return _native.worker_place(self._native)[2]

    @property
    def rank(self) -> int:
        """Of this worker within the group."""
        return _native.worker_place(self._native)[3]

    @property
    def size(self) -> int:
        """Members, as of the last refresh."""
        return _native.worker_place(self._native)[4]

    def all_reduce(self, array: Any, op: str = "sum", *, out: Any = None, wire: str | None = None,
                   priority: int = 0) -> Handle:
        """Every member gets the sum, or what else `op` makes. A list of arrays travels as one.

        Args:
            array: float32, float64, int32 or int64, or a sequence of arrays of float32.
            op: "sum", "product", "min" or "max"; of a sequence: "sum". Integers wrap around; the
                minimum and the maximum of NaN and anything are NaN.
            out: of the same type and size, for the result; None = the array itself. Not for a
                sequence.
            wire: format on the wire of a sum of float32; None = the worker's setting.
            priority: order on a busy link; smaller goes first.
        """
        if isinstance(array, (list, tuple)):
            if op != "sum":
                raise ValueError(f"op is {op!r} for a sequence of arrays; make one call for each")
            if out is not None:
                raise ValueError("out is not for a sequence of arrays; make one call for each")
            return self._all_reduce_many(array, wire, priority)
        return self._reduce(_native.group_all_reduce, array, op, out, wire, priority)

    def reduce_scatter(self, array: Any, op: str = "sum", *, out: Any = None,
                       wire: str | None = None, priority: int = 0) -> Handle:
        """Part i of the sum goes to member i; the other parts of the array (or of `out`, which has all
        parts, too) are overwritten.

        Arguments as of all_reduce.
        """
        return self._reduce(_native.group_reduce_scatter, array, op, out, wire, priority)

    def all_gather(self, array: Any, *, wire: str | None = None, priority: int = 0) -> Handle:
        """Every member gets part i of each member i. Elements of any type.

        Parts differ by at most one element, the larger ones first, if elements are float32, float64,
        int32 or int64; they are equal for others, or the call raises InvalidArgument.
        """
        data, type_ = movable(array, "array", self.size)
        return Handle(_native.group_all_gather(self._native, data, type_, wire_number(wire, -1),
                                               priority), array, array)

    def broadcast(self, array: Any, root: int = 0, *, wire: str | None = None,
                  priority: int = 0) -> Handle:
        """Every member gets the array of the member of rank `root`. Elements of any type."""
        data, type_ = movable(array, "array")
        return Handle(_native.group_broadcast(self._native, data, type_, root,
                                              wire_number(wire, -1), priority), array, array)

    def barrier(self) -> Handle:
        """Done when every member has called it."""
        return Handle(_native.group_barrier(self._native), None)

    def refresh(self) -> None:
        """Adopts a change of members. Raises Unavailable when this worker has no group any more."""
        interruptible(_native.group_refresh, self._native)

    def _reduce(self, function: Any, array: Any, op: str, out: Any, wire: str | None,
                priority: int) -> Handle:
        given, type_, count = combinable(array, "array", writable=out is None)
        result, output = array, given
        if out is not None:
            result = out
            output, type_of_output, count_of_output = combinable(out, "out", writable=True)
            if type_of_output != type_:
                raise TypeError("out has elements of another type than array; convert one of them")
            if count_of_output != count:
                raise InvalidArgument(
                    f"out has {count_of_output} elements and array {count}; pass as many")
        return Handle(function(self._native, given, output, type_, operation_number(op),
                               wire_number(wire, -1), priority), result, result)

    def _all_reduce_many(self, arrays: Sequence[Any], wire: str | None, priority: int) -> Handle:
        native = _native.group_all_reduce_many(
            self._native, wire_number(wire, -1), priority,
            *(floats(array, "array", writable=True) for array in arrays))
        return Handle(native, arrays, arrays)
