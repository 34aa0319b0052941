# SPDX-License-Identifier: Apache-2.0
"""TorchRec's collections of embeddings over sparse tables.

    import covey.torch.torchrec

    model = DLRM(covey.torch.torchrec.EmbeddingBagCollection(
        tables=configs, client=client, optimizer=covey.rowwise_adagrad(0.05)), ...)

A model takes them in the place of torchrec.EmbeddingBagCollection and torchrec.EmbeddingCollection.
TorchRec shards rows over the trainers' memory, and a dead trainer ends the job; here they are on
servers, workers are data parallel, and DistributedModelParallel has nothing to do. For TorchRec 1.0
and later, with or without a GPU.
"""

from __future__ import annotations

import functools
from typing import Any, Iterable

import torch
from torchrec.modules.embedding_configs import (BaseEmbeddingConfig, DataType, EmbeddingBagConfig,
                                                EmbeddingConfig, PoolingType)
from torchrec.modules.embedding_modules import (EmbeddingBagCollectionInterface,
                                                EmbeddingCollectionInterface,
                                                get_embedding_names_by_table)
from torchrec.sparse.jagged_tensor import JaggedTensor, KeyedJaggedTensor, KeyedTensor

from covey.client import Client
from covey.definitions import Optimizer, SparseTableSpec, uniform
from covey.sparse import SparseTable
from covey.torch.embedding import Embedding, EmbeddingBag, ask_all, prefetch_all

_TYPES = {DataType.FP32: "float32", DataType.FP16: "float16", DataType.BF16: "bfloat16"}
_MODES = {PoolingType.SUM: "sum", PoolingType.MEAN: "mean"}


def _initializer(config: BaseEmbeddingConfig) -> dict[str, Any]:
    init = config.init_fn
    if isinstance(init, functools.partial) and init.func is torch.nn.init.uniform_:
        return uniform(init.keywords["a"], init.keywords["b"])
    raise ValueError(f"init_fn of table {config.name!r} fills a whole weight, and servers make one row "
                     "at a time; pass initializer=, which then counts for all tables")


def _create(client: Client, prefix: str, configs: Iterable[BaseEmbeddingConfig],
            optimizer: Optimizer, options: dict[str, Any]) -> dict[str, SparseTable]:
    """Tables by the configurations' names."""
    tables: dict[str, SparseTable] = {}
    for config in configs:
        if config.name in tables:
            raise ValueError(f"two tables are called {config.name!r}; give each its own name")
        if config.data_type not in _TYPES:
            raise ValueError(f"table {config.name!r} is {config.data_type}; use one of "
                             + ", ".join(str(known) for known in _TYPES))
        own: dict[str, Any] = {"dtype": _TYPES[config.data_type], **options}
        if "initializer" not in own:
            own["initializer"] = _initializer(config)
        tables[config.name] = client.create_sparse_table(
            SparseTableSpec(f"{prefix}/{config.name}", config.embedding_dim, optimizer, **own))
        if not config.feature_names:
            config.feature_names = [config.name]
    return tables


def _features_of(features: KeyedJaggedTensor,
                 configs: Iterable[BaseEmbeddingConfig]) -> list[list[JaggedTensor]]:
    """Those of each table."""
    if features.inverse_indices_or_none() is not None:
        raise NotImplementedError("features have inverse indices (variable batch sizes), which "
                                  "collections over sparse tables do not expand; pass whole batches")
    by_name = features.to_dict()
    return [[by_name[name] for name in config.feature_names] for config in configs]


def _keys_of(features: list[JaggedTensor]) -> torch.Tensor:
    """One read gets the rows of all of a table's features."""
    return torch.cat([feature.values() for feature in features])


def _asked(modules: torch.nn.ModuleDict, of_tables: list[list[JaggedTensor]]) -> list[Any]:
    """The modules with their keys."""
    return [(module, _keys_of(features)) for module, features in zip(modules.values(), of_tables)]


class EmbeddingBagCollection(EmbeddingBagCollectionInterface):
    """torchrec.EmbeddingBagCollection over sparse tables, one per configuration.

    forward() reads all tables at once, each with one request per shard. Gradients leave by
    covey.torch.EmbeddingOptimizer(model.modules()), or DistributedOptimizer(embeddings=...). All else
    is as of covey.torch.EmbeddingBag: no parameters, nothing in state_dict().

    num_embeddings is no limit: every 64-bit integer is a key, and rows come into being with their
    first gradient. Pass rows_max= for a limit.
    """

    def __init__(self, tables: list[EmbeddingBagConfig], *, client: Client, optimizer: Optimizer,
                 prefix: str = "model", is_weighted: bool = False, **options: Any) -> None:
        """Creates the tables, or takes equal ones.

        Args:
            tables: as of torchrec. First values are uniform between weight_init_min and
                weight_init_max, unless `initializer` is given.
            client: worker.connect() or covey.connect().
            optimizer: of all tables.
            prefix: tables are called prefix/name.
            is_weighted: features have weights; only with sums.
            options: other fields of SparseTableSpec, for all tables: contract, rows_max, wire, ...
        """
        super().__init__()
        self._configs = list(tables)
        self._is_weighted = is_weighted
        made = _create(client, prefix, self._configs, optimizer, options)
        self.embedding_bags = torch.nn.ModuleDict({
            config.name: EmbeddingBag(config.embedding_dim, made[config.name],
                                      mode=_MODES[config.pooling], include_last_offset=True)
            for config in self._configs})
        self._names = [name for names in get_embedding_names_by_table(self._configs)
                       for name in names]
        self._widths = [config.embedding_dim for config in self._configs
                        for _ in config.feature_names]

    def forward(self, features: KeyedJaggedTensor) -> KeyedTensor:
        """A row for each feature and example."""
        of_tables = _features_of(features, self._configs)
        asked = ask_all(_asked(self.embedding_bags, of_tables))
        pooled: list[torch.Tensor] = []
        for bag, of_table, rows_asked in zip(self.embedding_bags.values(), of_tables, asked):
            lengths = torch.cat([feature.lengths() for feature in of_table])
            weights = (torch.cat([feature.weights() for feature in of_table])
                       if self._is_weighted else None)
            rows = bag._pool(*rows_asked, torch.nn.functional.pad(lengths.cumsum(0), (1, 0)),
                             weights)
            pooled += rows.chunk(len(of_table))
        return KeyedTensor(keys=self._names, length_per_key=self._widths,
                           values=torch.cat(pooled, dim=1))

    def prefetch(self, features: KeyedJaggedTensor) -> None:
        """Starts to read the rows of the next batch, as EmbeddingBag.prefetch."""
        prefetch_all(_asked(self.embedding_bags, _features_of(features, self._configs)))

    def embedding_bag_configs(self) -> list[EmbeddingBagConfig]:
        return self._configs

    def is_weighted(self) -> bool:
        return self._is_weighted


class EmbeddingCollection(EmbeddingCollectionInterface):
    """torchrec.EmbeddingCollection over sparse tables: a row for each key. All else is as of
    EmbeddingBagCollection."""

    def __init__(self, tables: list[EmbeddingConfig], *, client: Client, optimizer: Optimizer,
                 prefix: str = "model", need_indices: bool = False, **options: Any) -> None:
        """Creates the tables, or takes equal ones.

        Args:
            tables, client, optimizer, prefix, options: as of EmbeddingBagCollection; all tables have rows of
                one width.
            need_indices: the results' weights are the keys.
        """
        super().__init__()
        self._configs = list(tables)
        self._need_indices = need_indices
        widths = sorted({config.embedding_dim for config in self._configs})
        if len(widths) != 1:
            raise ValueError(f"embedding_dim is {', '.join(map(str, widths)) or 'missing'}; tables of "
                             "an EmbeddingCollection have one width")
        self._width: int = widths[0]
        made = _create(client, prefix, self._configs, optimizer, options)
        self.embeddings = torch.nn.ModuleDict({
            config.name: Embedding(config.embedding_dim, made[config.name])
            for config in self._configs})
        self._names: list[list[str]] = get_embedding_names_by_table(self._configs)

    def forward(self, features: KeyedJaggedTensor) -> dict[str, JaggedTensor]:
        """By the name of each feature, its rows."""
        of_tables = _features_of(features, self._configs)
        asked = ask_all(_asked(self.embeddings, of_tables))
        found: dict[str, JaggedTensor] = {}
        for embedding, of_table, names, rows_asked in zip(
                self.embeddings.values(), of_tables, self._names, asked):
            rows = embedding._embed(*rows_asked)
            parts = rows.split([feature.values().numel() for feature in of_table])
            for name, feature, part in zip(names, of_table, parts):
                found[name] = JaggedTensor(values=part, lengths=feature.lengths(),
                                           weights=feature.values() if self._need_indices else None)
        return found

    def prefetch(self, features: KeyedJaggedTensor) -> None:
        """Starts to read the rows of the next batch, as Embedding.prefetch."""
        prefetch_all(_asked(self.embeddings, _features_of(features, self._configs)))

    def embedding_configs(self) -> list[EmbeddingConfig]:
        return self._configs

    def need_indices(self) -> bool:
        return self._need_indices

    def embedding_dim(self) -> int:
        return self._width

    def embedding_names_by_table(self) -> list[list[str]]:
        return self._names
