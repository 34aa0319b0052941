# SPDX-License-Identifier: Apache-2.0
"""Embeddings whose rows live on servers."""

from __future__ import annotations

from typing import Any, Iterable

import torch
from torch.nn import functional

from covey.sparse import SparseTable
from covey.torch.rows import Pull, rows_of, start_all

_KEYS = 2**64
_PREFETCHED_MAX = 4
_UNSUPPORTED = {
    "num_embeddings": "every 64-bit integer is a key; leave it out",
    "padding_idx": "use padding_key=",
    "max_norm": "rows are not renormalized",
    "norm_type": "rows are not renormalized",
    "scale_grad_by_freq": "gradients of equal keys are added up",
    "sparse": "gradients are always those of the batch's rows",
    "device": "rows come to the device of the keys",
    "dtype": "rows arrive as float32; convert the output with .to(), and let servers store them "
             "in 2 bytes with SparseTableSpec(dtype=...)",
    "_weight": "first values are the table's: SparseTableSpec(initializer=...)",
}


class _Lookup(torch.nn.Module):
    """What Embedding and EmbeddingBag have in common."""

    def __init__(self, embedding_dim: int, table: SparseTable, padding_key: int | None,
                 unsupported: dict[str, Any]) -> None:
        super().__init__()
        for name in unsupported:
            raise TypeError(f"{type(self).__name__} has no {name}: "
                            f"{_UNSUPPORTED.get(name, 'it is not known here')}")
        self._rows = rows_of(table)
        if embedding_dim != table.width:
            raise ValueError(f"embedding_dim is {embedding_dim}, and table {table.name!r} has rows "
                             f"of {table.width} elements; pass embedding_dim={table.width}, or "
                             "another table")
        if padding_key is not None and not -_KEYS // 2 <= padding_key < _KEYS:
            raise ValueError(f"padding_key is {padding_key}; keys have 64 bits")
        self.embedding_dim = embedding_dim
        self.table = table
        self.padding_key = padding_key
        self._prefetched: list[Pull] = []

    def prefetch(self, keys: torch.Tensor) -> None:
        """Starts to read the rows of the next batch; forward() with the same keys takes them.

        Such rows have every push of this process through the same client, as rows that forward()
        reads itself: those that are pushed in between are read again. May be missing: pushes by
        others, and those that the table's contract held in a buffer, if they became part of the
        rows after this call. The newest four that no forward() has taken are kept.
        """
        prefetch_all([(self, keys)])

    def rows(self, keys: torch.Tensor) -> torch.Tensor:
        """The rows of these keys as the servers have them now, to look at: of the shape of `keys`
        and embedding_dim. Also that of padding_key, which forward() does not read."""
        distinct, places = torch.unique(self._checked(keys), return_inverse=True)
        with torch.no_grad():
            pull = self._rows.pull(distinct)
            start_all([pull])
            return pull.wait()[places].to(keys.device)

    def extra_repr(self) -> str:
        padding = "" if self.padding_key is None else f", padding_key={self.padding_key}"
        return f"{self.embedding_dim}, table={self.table.name!r}{padding}"

    def __deepcopy__(self, _: Any) -> Any:
        raise TypeError(f"{type(self).__name__} over table {self.table.name!r} cannot be copied, "
                        "its rows live on servers; make another one over the same table")

    def __reduce_ex__(self, _: Any) -> Any:
        raise TypeError(f"{type(self).__name__} over table {self.table.name!r} cannot be pickled, "
                        "its rows live on servers; save state_dict()s, and a snapshot of the servers")

    def _take_prefetched(self, distinct: torch.Tensor) -> Pull | None:
        """The pull that prefetch() has started for these keys."""
        found = [pull for pull in self._prefetched if torch.equal(pull.keys, distinct)]
        if not found:
            return None
        self._prefetched.remove(found[0])
        return found[0]

    def _take(self, pull: Pull, device: torch.device) -> tuple[torch.Tensor, int | None]:
        """The rows, and which one is padding."""
        rows = self._rows.use(pull, device, trains=self.training and torch.is_grad_enabled())
        return rows, None if self.padding_key is None else len(pull.keys)

    def _distinct(self, keys: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The keys once each, ascending, and the place of each one among them; padding is last."""
        distinct, places = torch.unique(self._checked(keys), return_inverse=True)
        if self.padding_key is None:
            return distinct, places
        is_row = distinct != (self.padding_key + _KEYS // 2) % _KEYS - _KEYS // 2
        row = torch.where(is_row, is_row.cumsum(0) - 1, is_row.sum())
        return distinct[is_row], row[places]

    @staticmethod
    def _checked(keys: Any) -> torch.Tensor:
        if not isinstance(keys, torch.Tensor) or keys.dtype not in (torch.int64, torch.int32):
            raise TypeError(f"keys need a tensor of int64 or int32, got "
                            f"{getattr(keys, 'dtype', type(keys).__name__)}; convert with .long()")
        return keys.to("cpu", torch.int64)


def ask_all(asked: Iterable[tuple[_Lookup, torch.Tensor]]) -> list[tuple[Pull, torch.Tensor]]:
    """Starts to read the rows that these modules need for these keys, all at once, unless prefetch()
    has. For each module the pull, and the row of each key among its rows, on the keys' device."""
    answers: list[tuple[Pull, torch.Tensor]] = []
    new: list[Pull] = []
    for module, keys in asked:
        distinct, places = module._distinct(keys)
        pull = module._take_prefetched(distinct)
        if pull is None:
            pull = module._rows.pull(distinct)
            new.append(pull)
        answers.append((pull, places.to(keys.device)))
    start_all(new)
    return answers


def prefetch_all(asked: Iterable[tuple[_Lookup, torch.Tensor]]) -> None:
    """_Lookup.prefetch of several modules, at once."""
    early = [(module, module._rows.pull(module._distinct(keys)[0])) for module, keys in asked]
    start_all(pull for _, pull in early)
    for module, pull in early:
        module._rows.note_early(pull)
        module._prefetched.append(pull)
        del module._prefetched[:-_PREFETCHED_MAX]


class Embedding(_Lookup):
    """torch.nn.Embedding over a sparse table.

        table = client.create_sparse_table(covey.SparseTableSpec(
            "items", width=16, optimizer=covey.adagrad(0.05), initializer=covey.normal(0, 0.1)))
        items = covey.torch.Embedding(16, table)
        optimizer = covey.torch.DistributedOptimizer(..., embeddings=[items])

    forward() pulls the rows of the batch's distinct keys. backward() adds up their gradients here,
    and step() of the optimizer pushes them. The servers update the rows with the table's optimizer,
    so the module has no parameters, and nothing of it is in state_dict(): snapshots save rows.

    In eval mode and under no_grad() rows are pulled, and no gradient is kept. A module may be used
    several times before a step, and several modules may share a table: gradients of a key add up.

    Keys are int64 or int32 tensors of any shape; every 64-bit integer is a key. Rows come to the
    device of the keys. Keys on a GPU are first copied to the CPU, which waits for the GPU.

    Attributes:
        embedding_dim, table, padding_key: as given.
    """

    def __init__(self, embedding_dim: int, table: SparseTable, *, padding_key: int | None = None,
                 **unsupported: Any) -> None:
        """Makes no table and no row.

        Args:
            embedding_dim: the table's width.
            table: from client.create_sparse_table() or client.find_sparse_table().
            padding_key: reads as zeros, and its row is neither pulled nor pushed.
            unsupported: other arguments of torch.nn.Embedding: a TypeError that names them.
        """
        super().__init__(embedding_dim, table, padding_key, unsupported)

    def forward(self, keys: torch.Tensor) -> torch.Tensor:
        """A row for each key."""
        [asked] = ask_all([(self, keys)])
        return self._embed(*asked)

    def _embed(self, pull: Pull, places: torch.Tensor) -> torch.Tensor:
        rows, padding = self._take(pull, places.device)
        return functional.embedding(places, rows, padding)


class EmbeddingBag(_Lookup):
    """torch.nn.EmbeddingBag over a sparse table: sums, means or maxima of bags of rows.

    All else is as of Embedding.
    """

    def __init__(self, embedding_dim: int, table: SparseTable, *, mode: str = "mean",
                 padding_key: int | None = None, include_last_offset: bool = False,
                 **unsupported: Any) -> None:
        """Makes no table and no row.

        Args:
            embedding_dim, table: as of Embedding.
            mode: "sum", "mean" or "max".
            padding_key: counts in no bag, and its row is neither pulled nor pushed.
            include_last_offset: the last offset is the end of the last bag.
            unsupported: as of Embedding.
        """
        if mode not in ("sum", "mean", "max"):
            raise ValueError(f"mode is {mode!r}; use 'sum', 'mean' or 'max'")
        super().__init__(embedding_dim, table, padding_key, unsupported)
        self.mode = mode
        self.include_last_offset = include_last_offset

    def forward(self, keys: torch.Tensor, offsets: torch.Tensor | None = None,
                per_sample_weights: torch.Tensor | None = None) -> torch.Tensor:
        """A row for each bag; zeros for a bag without keys.

        Args:
            keys: a bag per row of two dimensions; or one dimension, divided by `offsets`.
            offsets: where each bag begins.
            per_sample_weights: float32, of the shape of `keys`; only with mode="sum".
        """
        [asked] = ask_all([(self, keys)])
        return self._pool(*asked, offsets, per_sample_weights)

    def _pool(self, pull: Pull, places: torch.Tensor, offsets: torch.Tensor | None = None,
              per_sample_weights: torch.Tensor | None = None) -> torch.Tensor:
        if per_sample_weights is not None and self.mode != "sum":
            raise ValueError(f"per_sample_weights with mode={self.mode!r}; only 'sum' has them")
        rows, padding = self._take(pull, places.device)
        result: torch.Tensor = functional.embedding_bag(
            places, rows, offsets if offsets is None else offsets.to(places.device, places.dtype),
            mode=self.mode, per_sample_weights=per_sample_weights,
            include_last_offset=self.include_last_offset, padding_idx=padding)
        return result

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, mode={self.mode!r}"
