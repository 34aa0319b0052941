# SPDX-License-Identifier: Apache-2.0
"""Rows of sparse tables that a worker changes by itself for some steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import covey._native as _native
from covey._memory import floats, keys_of
from covey.sparse import count_of, new_rows

if TYPE_CHECKING:
    from covey.worker import Worker

# No floats, as an address and their number.
_NOTHING = (0, 0)


class LocalRows:
    """The rows of a sparse table under "local:H", with which a worker takes H steps of its own; by
    Worker.local_rows.

    A step changes copies of the rows in this process, by the table's inner optimizer. After H steps
    the round is over: how far each row has moved travels to the servers, and the table's optimizer
    takes the mean over all groups, or over those that have touched the row
    (SparseTableSpec.round_mean). Rows that no group has touched stay.

        rows = worker.local_rows(covey.SparseTableSpec(
            "items", width=16, contract="local:8", inner_optimizer=covey.adagrad(0.05),
            optimizer=covey.sgd(worker.initial_groups ** 0.5)))
        while training:
            values = rows.pull(keys)                    # len(keys) x width
            rows.step(gradients, samples=64)            # sums over the examples, a row for each key
        rows.finish()

    Each row is read from the servers once a round, when it is first asked for. That waits until the
    last round has become an update, so groups go through rounds together: a worker takes a step also
    when it has no examples. Each wait ends with the `timeout` of join(), or by Ctrl-C; the same call
    can be repeated then, and what was pushed counts once.

    A group has one worker. The state of the inner optimizer stays in this process. To evaluate,
    read what the servers have: worker.connect().find_sparse_table("items"). One call at a time, from
    any thread.

    Attributes:
        name: of the table.
        width: elements of a row.
    """

    def __init__(self, worker: Worker, native: Any, name: str) -> None:
        # Before the worker, which has to outlive it: attributes are released in this order.
        self._native = native
        self._worker = worker
        self.name = name
        self.width = _native.local_rows_width(native)

    def __repr__(self) -> str:
        return f"<covey.LocalRows {self.name!r} {self.width}>"

    def close(self) -> None:
        """Waits for the push in flight. The worker's close() does it, too."""
        _native.local_rows_close(self._native)

    def pull(self, keys: Any, out: Any = None) -> Any:
        """The rows of the keys as this worker's steps have left them, in `out` or a new array.

        Args:
            keys: as SparseTable takes them, in any order; they may repeat.
            out: float32, a row for each key.
        """
        if out is None:
            out = new_rows(count_of(keys_of(keys)), self.width)
        _native.local_rows_pull(self._native, keys_of(keys), floats(out, "out", writable=True))
        return out

    def step(self, gradient: Any, *, samples: int = 1) -> None:
        """One step of the inner optimizer; after H of them the round ends, and its push starts.

        Args:
            gradient: float32, a row for each key of the last pull, the SUM over `samples` examples;
                those of equal keys are added up. None: after no pull.
            samples: examples behind it; with 0 the step counts and changes no row.

        Raises:
            InvalidArgument: the sizes differ; or NaN or infinity, and no row has changed.
        """
        memory = _NOTHING if gradient is None else floats(gradient, "gradient", writable=False)
        _native.local_rows_step(self._native, memory, samples)

    def finish(self) -> None:
        """Ends the round early, if it has begun, and waits until the servers have its push.

        They apply it when the other groups' pushes have come, or these groups have left.
        """
        _native.local_rows_finish(self._native)

    @property
    def round(self) -> int:
        """The round of the next step, from 1."""
        return _native.local_rows_round(self._native)
