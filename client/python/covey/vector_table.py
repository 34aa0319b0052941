# SPDX-License-Identifier: Apache-2.0
"""Tables of vectors: what servers compute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Sequence

import covey._native as _native
from covey._memory import CONTRACT_DECIDES, timeout_number
from covey.errors import InvalidArgument
from covey.handle import Handle, Result
from covey.table import Table

if TYPE_CHECKING:
    from covey.client import Client

# By their numbers in covey.h.
_SET, _SCALE, _COPY, _AXPY = range(4)
_DOT, _NORM1, _NORM2, _NORM_MAX, _SUM, _MIN, _MAX, _NON_ZERO, _TOP = range(9)
_NORMS = {1: _NORM1, 2: _NORM2, float("inf"): _NORM_MAX}


@dataclass(frozen=True)
class Function:
    """A change of a vector by the servers, for Vectors.call; made by its static methods.

    Arithmetic is in float32. A scalar is finite in float32.
    """

    kind: int
    target: int
    source: int = 0
    scalar: float = 0.0

    @staticmethod
    def set(target: int, scalar: float) -> Function:
        """target = scalar"""
        return Function(_SET, target, 0, scalar)

    @staticmethod
    def scale(target: int, scalar: float) -> Function:
        """target *= scalar"""
        return Function(_SCALE, target, 0, scalar)

    @staticmethod
    def copy(target: int, source: int) -> Function:
        """target = source"""
        return Function(_COPY, target, source)

    @staticmethod
    def axpy(target: int, scalar: float, source: int) -> Function:
        """target += scalar * source"""
        return Function(_AXPY, target, source, scalar)


@dataclass(frozen=True)
class Query:
    """A question about vectors, for Vectors.ask; made by its static methods.

    Sums are in float64. NaN is neither a minimum nor a maximum, and the largest of top_k.
    """

    kind: int
    vector: int
    other: int = 0
    count: int = 0

    @staticmethod
    def dot(a: int, b: int) -> Query:
        """The inner product."""
        return Query(_DOT, a, b)

    @staticmethod
    def norm(vector: int, ord: float = 2) -> Query:
        """The norm of order 1, 2 or infinity, as numpy.linalg.norm has it."""
        if ord not in _NORMS:
            raise InvalidArgument(f"the order of a norm is {ord}; use 1, 2 or float('inf')")
        return Query(_NORMS[ord], vector)

    @staticmethod
    def sum(vector: int) -> Query:
        """The sum of the elements."""
        return Query(_SUM, vector)

    @staticmethod
    def min(vector: int) -> Query:
        """The smallest element."""
        return Query(_MIN, vector)

    @staticmethod
    def max(vector: int) -> Query:
        """The largest element."""
        return Query(_MAX, vector)

    @staticmethod
    def count_nonzero(vector: int) -> Query:
        """How many elements are not 0."""
        return Query(_NON_ZERO, vector)

    @staticmethod
    def top_k(vector: int, k: int) -> Query:
        """The k elements of largest magnitude, at most 1024: pairs of place and value."""
        return Query(_TOP, vector, 0, k)


class Answers(Handle):
    """An operation in progress that has answers; by Vectors.ask."""

    __slots__ = ("_queries",)

    def __init__(self, native: Any, queries: Sequence[Query]) -> None:
        super().__init__(native, None)
        self._queries = queries

    def wait(self, timeout: float | None = None) -> Result:
        """As Handle.wait; `values` of the result is a list with the answer to each query."""
        result = super().wait(timeout)
        answers: list[Any] = []
        for i, query in enumerate(self._queries):
            value, top = _native.handle_answer(self._native, i)
            answers.append(top if query.kind == _TOP else
                           int(value) if query.kind == _NON_ZERO else value)
        return Result(answers, result.version, result.staleness, result.age, result.duplicate,
                      result.discarded, result.durable, result.samples)


class Vectors(Table):
    """A table of vectors, all of the table's shape, with which its servers compute; by
    Client.create_vectors. Programs need only numbers of them: inner products, norms.

        w = client.create_vectors(covey.TableSpec("w", (n,), covey.vectors(3), "async"))
        w.push(gradient).wait()              # is added to vector 1
        w.axpy(0, -0.1, 1)                   # w[0] += -0.1 * w[1]
        slope = w.dot(1, 1)

    A vector is named by its number. Vector 0 is the values, which pull() reads. Vector 1 is what
    push() adds to: the gradient, times the learning rate (1 unless given) and divided by `samples`.
    The others belong to the program; all but the values begin with zeros. To read another vector,
    copy it to vector 0.

    The methods below wait, as NumPy's do: each is a round trip to the servers. call() and ask()
    take many functions or queries in one. Functions and queries see what was waited for before, and
    pushes of other programs that were flushed. A function is applied exactly once; an overflow is
    not looked for. Any thread may use it.

    Attributes:
        vectors: how many there are, the values among them.
    """

    def __init__(self, client: Client, native: Any, name: str, elements: int,
                 shape: tuple[int, ...]) -> None:
        super().__init__(client, native, name, elements, shape)
        self.vectors: int = _native.table_vectors(native)
        if self.vectors == 0:
            raise InvalidArgument(f"table {name!r} is not one of vectors; create it with the "
                                  "optimizer covey.vectors(count)")

    def __repr__(self) -> str:
        return f"<covey.Vectors {self.name!r} {self.vectors} x {self.shape}>"

    def call(self, functions: Sequence[Function], *, timeout: float | None = None) -> Handle:
        """Starts to apply functions in their order, as one update: at most 256.

        It is applied exactly once, and is as durable as a push. The contract of the table is async
        or ssp.
        """
        arguments: list[Any] = []
        for function in functions:
            arguments += function.kind, function.target, function.source, float(function.scalar)
        return Handle(_native.client_call(self._client._native, self._native,
                                          timeout_number(timeout), *arguments), None)

    def ask(self, queries: Sequence[Query], *, min_version: int = 0,
            timeout: float | None = None) -> Answers:
        """Starts to ask the servers, at most 256 queries; `values` of the result has the answers.

        They are about one durable version of each shard.
        """
        arguments: list[int] = []
        for query in queries:
            arguments += query.kind, query.vector, query.other, query.count
        native = _native.client_ask(self._client._native, self._native, CONTRACT_DECIDES,
                                    min_version, 0.0, timeout_number(timeout), *arguments)
        return Answers(native, tuple(queries))

    def set(self, target: int, scalar: float) -> None:
        """target = scalar, in all elements"""
        self.call([Function.set(target, scalar)]).wait()

    def scale(self, target: int, scalar: float) -> None:
        """target *= scalar"""
        self.call([Function.scale(target, scalar)]).wait()

    def copy(self, target: int, source: int) -> None:
        """target = source"""
        self.call([Function.copy(target, source)]).wait()

    def axpy(self, target: int, scalar: float, source: int) -> None:
        """target += scalar * source"""
        self.call([Function.axpy(target, scalar, source)]).wait()

    def dot(self, a: int, b: int) -> float:
        """The inner product of two vectors."""
        return self._number(Query.dot(a, b))

    def norm(self, vector: int, ord: float = 2) -> float:
        """The norm of order 1, 2 or infinity, as numpy.linalg.norm has it."""
        return self._number(Query.norm(vector, ord))

    def sum(self, vector: int) -> float:
        """The sum of the elements."""
        return self._number(Query.sum(vector))

    def min(self, vector: int) -> float:
        """The smallest element."""
        return self._number(Query.min(vector))

    def max(self, vector: int) -> float:
        """The largest element."""
        return self._number(Query.max(vector))

    def count_nonzero(self, vector: int) -> int:
        """How many elements are not 0."""
        return int(self._number(Query.count_nonzero(vector)))

    def top_k(self, vector: int, k: int) -> tuple[Any, Any]:
        """The k elements of largest magnitude, the largest first: NumPy arrays of their places in
        the table, in row-major order, and of their values. At most 1024."""
        import numpy  # here, because programs without NumPy use ask()
        top = self.ask([Query.top_k(vector, k)]).wait().values[0]
        return (numpy.array([place for place, _ in top], numpy.int64),
                numpy.array([value for _, value in top], numpy.float32))

    def _number(self, query: Query) -> float:
        answer: float = self.ask([query]).wait().values[0]
        return answer
