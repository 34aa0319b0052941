# SPDX-License-Identifier: Apache-2.0
"""A dense table: values that are pushed to and pulled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import covey._native as _native
from covey._memory import CONTRACT_DECIDES, floats, timeout_number, wire_number
from covey.errors import InvalidArgument
from covey.handle import Handle

if TYPE_CHECKING:
    from covey.client import Client


def _terms_of(left: Any, right: Any) -> int:
    """The number of terms of factors, which is their first extent."""
    terms = [int(factor.shape[0]) if len(getattr(factor, "shape", ())) > 1 else 0
             for factor in (left, right)]
    if terms[0] != terms[1] or terms[0] == 0:
        raise InvalidArgument(
            f"left has shape {tuple(getattr(left, 'shape', ()))} and right "
            f"{tuple(getattr(right, 'shape', ()))}; pass (terms, rows) and (terms, columns)")
    return terms[0]


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
            wire: "float32", "float16", "bfloat16", "scaled-float16", "int8" or "float8".
            timeout: deadline in seconds; None = the client's.
        """
        memory = floats(gradient, "gradient", writable=False)
        native = _native.client_push(self._client._native, self._native, memory,
                                     wire_number(wire, 0), samples, timeout_number(timeout))
        return Handle(native, gradient)

    def pull(self, out: Any = None, *, min_version: int = 0, staleness: int | None = None,
             max_age: float = 0.0, value_wire: str | None = None,
             timeout: float | None = None) -> Handle:
        """Starts to read the values into `out`, or into a new array of the table's shape.

        Args:
            out: float32; untouched until the handle is done.
            min_version: the least version of every shard.
            staleness: replaces the contract's bound.
            max_age: longest time since a shard's last update, in seconds; 0 = any.
            value_wire: how the values travel, in the formats of push's `wire`; the servers keep
                float32.
            timeout: as for push.
        """
        out = self._new() if out is None else out
        memory = floats(out, "out", writable=True)
        native = _native.client_pull(
            self._client._native, self._native, memory,
            CONTRACT_DECIDES if staleness is None else staleness, min_version, max_age,
            timeout_number(timeout), wire_number(value_wire, 0, "value_wire"))
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
            CONTRACT_DECIDES, 0, 0.0, timeout_number(timeout), wire_number(None, 0))
        return Handle(native, out, out)

    def push_pull(self, gradient: Any, out: Any = None, *, samples: int = 1,
                  wire: str | None = None, min_version: int = 0, staleness: int | None = None,
                  max_age: float = 0.0, value_wire: str | None = None,
                  timeout: float | None = None) -> Handle:
        """push and pull in one round trip: the gradient is applied, then the values are read."""
        out = self._new() if out is None else out
        deadline = timeout_number(timeout)
        native = _native.client_push_pull(
            self._client._native, self._native, floats(gradient, "gradient", writable=False),
            floats(out, "out", writable=True), wire_number(wire, 0), samples, deadline,
            CONTRACT_DECIDES if staleness is None else staleness, min_version, max_age, deadline,
            wire_number(value_wire, 0, "value_wire"))
        return Handle(native, (gradient, out), out)

    def push_outer_product(self, left: Any, right: Any, *, samples: int = 1,
                           wire: str | None = None, timeout: float | None = None) -> Handle:
        """Starts to apply the gradient left.T @ right of a matrix, which is given in its factors.

        The table has two dimensions or more, of which the first are the rows of the matrix. For a
        dense layer with weights of (outputs, inputs), `left` has the derivatives by the outputs and
        `right` the inputs, a row for each example of the batch. K examples take 4 * K * (M + N)
        bytes in place of 4 * M * N. Where the gradient itself is smaller, it is computed and sent,
        for each shard by itself; all of `right` goes to each, so such a table has few, large shards
        (`shard_bytes` in TableSpec.extra).

        Args:
            left: float32, (K, M), M being the table's first extent.
            right: float32, (K, ...), with the table's other extents, or their product. Both stay
                unchanged until the handle is done.
            samples: as for push, training examples behind the sum; usually K.
            wire: as for push; the factors are what is rounded.
            timeout: as for push.
        """
        terms = _terms_of(left, right)
        native = _native.client_push_outer_products(
            self._client._native, self._native, floats(left, "left", writable=False),
            floats(right, "right", writable=False), terms, wire_number(wire, 0), samples,
            timeout_number(timeout))
        return Handle(native, (left, right))

    def push_pull_outer_product(self, left: Any, right: Any, out: Any = None, *, samples: int = 1,
                                wire: str | None = None, min_version: int = 0,
                                staleness: int | None = None, max_age: float = 0.0,
                                value_wire: str | None = None,
                                timeout: float | None = None) -> Handle:
        """push_outer_product and pull in one round trip."""
        out = self._new() if out is None else out
        deadline = timeout_number(timeout)
        terms = _terms_of(left, right)
        native = _native.client_push_pull_outer_products(
            self._client._native, self._native, floats(left, "left", writable=False),
            floats(right, "right", writable=False), terms, floats(out, "out", writable=True),
            wire_number(wire, 0), samples, deadline,
            CONTRACT_DECIDES if staleness is None else staleness, min_version, max_age, deadline,
            wire_number(value_wire, 0, "value_wire"))
        return Handle(native, (left, right, out), out)

    def _new(self) -> Any:
        import numpy  # here, because programs without NumPy pass `out`
        return numpy.empty(self.shape, numpy.float32)
