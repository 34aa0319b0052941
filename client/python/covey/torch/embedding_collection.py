# SPDX-License-Identifier: Apache-2.0
"""Embeddings of several tables, whose rows are read at once."""

from __future__ import annotations

from typing import Any, Iterator, Mapping

import torch

from covey.torch.embedding import Embedding, EmbeddingBag, ask_all, prefetch_all


class EmbeddingBagCollection(torch.nn.Module):
    """The embeddings of a model with many sparse tables, by the names of its features.

        embeddings = covey.torch.EmbeddingBagCollection({
            "user": covey.torch.Embedding(16, users),
            "bought": covey.torch.EmbeddingBag(16, items, mode="sum"),
            "seen": covey.torch.EmbeddingBag(16, items, mode="mean")})
        found = embeddings({"user": user_keys, "bought": (item_keys, offsets), "seen": seen_keys})
        scores = mlp(torch.cat([found["user"], found["bought"], found["seen"]], dim=1))

    forward() reads the rows of all features at once, where modules one after another would wait for
    each table. The optimizer's step() pushes the gradients of all tables at once, as ever. Each
    table's rows are of one version per shard, not of one instant over tables.

    Features may share a table, and a module may serve several features: gradients of a key add up.

    Attributes:
        embeddings: the modules, a torch.nn.ModuleDict.
    """

    def __init__(self, embeddings: Mapping[str, Embedding | EmbeddingBag]) -> None:
        """
        Args:
            embeddings: by the name of each feature an EmbeddingBag, or an Embedding.
        """
        super().__init__()
        for name, module in embeddings.items():
            if not isinstance(module, (Embedding, EmbeddingBag)):
                raise TypeError(f"feature {name!r} has {module!r}; pass a covey.torch.Embedding or "
                                "EmbeddingBag")
        self.embeddings = torch.nn.ModuleDict(embeddings)

    def forward(self, features: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        """By the name of each feature what its module returns.

        Args:
            features: by the name of each feature its keys, or a tuple of what its module's forward()
                takes: (keys, offsets), for example. Other names are passed over.
        """
        given = list(self._given(features))
        asked = ask_all((module, arguments[0]) for _, module, arguments in given)
        found: dict[str, torch.Tensor] = {}
        for (name, module, arguments), (pull, places) in zip(given, asked):
            answer = module._pool if isinstance(module, EmbeddingBag) else module._embed
            found[name] = answer(pull, places, *arguments[1:])
        return found

    def prefetch(self, features: Mapping[str, Any]) -> None:
        """Starts to read the rows of the next batch, as EmbeddingBag.prefetch."""
        prefetch_all((module, arguments[0]) for _, module, arguments in self._given(features))

    def _given(self, features: Mapping[str, Any]) -> Iterator[tuple[str, Any, tuple[Any, ...]]]:
        """For each feature its name, its module, and what the module's forward() takes."""
        for name, module in self.embeddings.items():
            if name not in features:
                raise ValueError(f"features have no {name!r}; give keys for each of "
                                 + ", ".join(self.embeddings))
            arguments = features[name]
            yield name, module, arguments if isinstance(arguments, tuple) else (arguments,)
