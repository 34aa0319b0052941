# SPDX-License-Identifier: Apache-2.0
"""Rows of a sparse table in this process: pulled for a forward pass, pushed as gradients."""

from __future__ import annotations

import functools
import weakref
from typing import Any, Iterable

import torch

from covey.client import Client
from covey.handle import Handle
from covey.sparse import SparseTable
from covey.torch.gradients import watched


class Pull:
    """Rows of distinct keys, on their way once start_all() has the pull.

    Attributes:
        keys: int64, ascending.
        batch: the same, divided among the servers.
    """

    def __init__(self, table: SparseTable, keys: torch.Tensor) -> None:
        self.keys = keys
        self.batch = table.batch(keys)
        self._table = table
        self._changed = torch.zeros(len(keys), dtype=torch.bool, device="cpu")
        # The last row is that of padding.
        self._rows = torch.zeros(len(keys) + 1, table.width, dtype=torch.float32, device="cpu")
        self._handle: Handle | None = None

    def note_push(self, keys: torch.Tensor) -> None:
        """Rows of these keys are read again before they are used."""
        self._changed |= torch.isin(self.keys, keys)

    def wait(self) -> torch.Tensor:
        """The rows, and after them one of zeros. Once."""
        if self._handle is not None:
            self._handle.wait()
        if self._changed.any():
            again = self.keys[self._changed]
            fresh = torch.empty(len(again), self._table.width, dtype=torch.float32, device="cpu")
            self._table.pull(again, fresh).wait()
            self._rows[:-1][self._changed] = fresh
        return self._rows


def start_all(pulls: Iterable[Pull]) -> None:
    """Starts to read the rows of all these pulls, which have not been started, at once."""
    of_clients: dict[Client, list[Pull]] = {}
    for pull in pulls:
        if len(pull.keys) > 0:
            of_clients.setdefault(pull._table._client, []).append(pull)
    for client, started in of_clients.items():
        handle = client.pull_many([(pull._table, pull.batch) for pull in started],
                                  [pull._rows[:-1] for pull in started])
        for pull in started:
            pull._handle = handle


class Rows:
    """What this process pulls and pushes of one table; all modules over the table share it.

    Gradients stay here, from backward() until push(). Rows that were pulled for a backward() that
    never comes go with the graph. Not thread-safe.
    """

    def __init__(self, table: SparseTable) -> None:
        self.table = table
        self.has_optimizer = False
        self._arrived: list[tuple[Pull, torch.Tensor]] = []
        self._early: weakref.WeakSet[Pull] = weakref.WeakSet()

    def pull(self, keys: torch.Tensor) -> Pull:
        """A pull of distinct keys, ascending."""
        return Pull(self.table, keys)

    def note_early(self, pull: Pull) -> None:
        """Pushes may change the rows of this pull before they are used."""
        self._early.add(pull)

    def use(self, pull: Pull, device: torch.device, *, trains: bool) -> torch.Tensor:
        """The rows, for a graph on this device to use; their gradient counts in the next push if
        `trains`."""
        rows = pull.wait().to(device)
        self._early.discard(pull)
        if not trains:
            return rows
        return watched(rows.requires_grad_(), functools.partial(self._arrive, pull))

    def forget(self) -> None:
        """Drops gradients."""
        for _, leaf in self._arrived:
            leaf.grad = None
        self._arrived.clear()

    def push(self, samples: int) -> Handle | None:
        """Starts to push the gradients, means over this number of examples, and drops them.

        Examples without rows count, too: they are a part of the mean.
        """
        arrived = list(self._arrived)
        gradients = [leaf.grad.detach()[:-1].cpu() for _, leaf in arrived]
        self.forget()
        if samples == 0:
            return None
        none = torch.empty(0, self.table.width, device="cpu")
        keys = torch.cat([pull.keys for pull, _ in arrived] or [none[:, 0].long()])
        sums = torch.cat(gradients or [none]) * samples
        handle = self.table.push(arrived[0][0].batch if len(arrived) == 1 else keys, sums,
                                 samples=samples)
        for early in self._early:
            early.note_push(keys)
        return handle

    def _arrive(self, pull: Pull, leaf: torch.Tensor) -> None:
        """Autograd has added to the gradient of the rows."""
        if not self.has_optimizer:
            raise RuntimeError(
                f"the rows of table {self.table.name!r} have a gradient, and no optimizer: pass "
                "embeddings= to covey.torch.DistributedOptimizer, or make a "
                "covey.torch.EmbeddingOptimizer, before backward()")
        # Once for each graph, however often backward() goes through it.
        if not any(other is leaf for _, other in self._arrived):
            self._arrived.append((pull, leaf))


# By client and name of the table. The client's number is in use for as long as the entry.
_rows: weakref.WeakValueDictionary[tuple[int, str], Rows] = weakref.WeakValueDictionary()


def rows_of(table: Any) -> Rows:
    """The ones that all modules over this table of this client share."""
    if not isinstance(table, SparseTable):
        raise TypeError(f"table is {table!r}; pass what client.create_sparse_table() or "
                        "client.find_sparse_table() returns")
    key = (id(table._client), table.name)
    rows = _rows.get(key)
    if rows is None:
        rows = _rows[key] = Rows(table)
    return rows
