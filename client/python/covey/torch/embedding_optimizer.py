# SPDX-License-Identifier: Apache-2.0
"""Pushes the gradients of rows."""

from __future__ import annotations

import logging
from typing import Any, Callable, Iterable

import torch

from covey.torch.embedding import Embedding, EmbeddingBag
from covey.torch.rows import Rows

_log = logging.getLogger("covey")


class EmbeddingOptimizer:
    """step() and zero_grad() of Embedding and EmbeddingBag, where no DistributedOptimizer does it.

        rows = covey.torch.EmbeddingOptimizer(model.modules(), samples_per_step=256)
        for users, items, ratings in loader:
            rows.zero_grad()
            criterion(model(users, items), ratings).backward()
            rows.step()

    It stands beside any optimizer of PyTorch that has the dense parameters. The rows' optimizer and
    learning rate are those of their tables' definitions. One push per table and step, with the
    gradients of all uses since the last step. As with DistributedOptimizer, gradients are those of
    the mean loss over `samples` examples, which weigh it against other workers' pushes.

    Attributes:
        samples: examples behind the next step's gradients.
        rows_refused: rows that the last step's updates did not make, because a table with
            when_full="skip" is full (SparseTableSpec.rows_max).
    """

    def __init__(self, embeddings: Iterable[torch.nn.Module], *,
                 samples_per_step: int | None = None) -> None:
        """
        Args:
            embeddings: modules; those that are neither Embedding nor EmbeddingBag are passed over.
            samples_per_step: examples behind each step; None = as `samples` says.
        """
        self.samples = samples_per_step
        self.rows_refused = 0
        self._tables: list[Rows] = []
        for module in embeddings:
            if isinstance(module, (Embedding, EmbeddingBag)) and module._rows not in self._tables:
                self._tables.append(module._rows)
                module._rows.has_optimizer = True

    def __len__(self) -> int:
        """Tables."""
        return len(self._tables)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops the gradients since the last step."""
        for rows in self._tables:
            rows.forget()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Pushes the gradients; returns when the servers have them. With 0 samples it pushes none.

        InvalidArgument: a gradient is not finite, or the table's contract is "bsp".
        FailedPrecondition: a table with when_full="refuse" is full; all rows that it has are
        updated. Gradients are dropped in any case.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if self.samples is None:
            raise ValueError("how many examples are behind these gradients? Pass "
                             "samples_per_step=, or set `samples` before step()")
        handles = [(rows, rows.push(self.samples)) for rows in self._tables]
        refused = 0
        for rows, handle in handles:
            result = handle.wait() if handle is not None else None
            if result is not None and result.rows_refused > 0:
                refused += result.rows_refused
                if self.rows_refused == 0:
                    _log.warning("table %s is full, and did not make %d rows; their gradients are "
                                 "lost", rows.table.name, result.rows_refused)
        self.rows_refused = refused
        return loss

    def flush(self, timeout: float = 60.0) -> None:
        """Returns when what was pushed is part of the rows, also where a contract buffers it."""
        for client in dict.fromkeys(rows.table._client for rows in self._tables):
            client.flush(timeout)
