# SPDX-License-Identifier: Apache-2.0
"""What each worker of torchrec_test.py runs, by name; prints one line of JSON."""

import json
import os
import sys

import on_device
import torch
import torchrec
from torchrec.modules.embedding_configs import DataType, PoolingType

import covey
import covey.torch
import covey.torch.torchrec

_KEYS = 20
_BATCH = 5
_FEATURES = ("user", "item", "tag")


def _batch(seed, weighted=False):
    """Features of several keys, some of none."""
    generator = on_device.generator(seed)
    lengths = torch.randint(4, (len(_FEATURES) * _BATCH,), generator=generator)
    count = int(lengths.sum())
    return torchrec.KeyedJaggedTensor.from_lengths_sync(
        list(_FEATURES), torch.randint(_KEYS, (count,), generator=generator), lengths=lengths,
        weights=torch.rand(count, generator=generator) if weighted else None)


def _bag_configs(pooling=PoolingType.SUM):
    """A table of two features, and a feature of two tables."""
    return [torchrec.EmbeddingBagConfig(num_embeddings=_KEYS, embedding_dim=4, name="things",
                                        feature_names=["user", "item"], pooling=pooling),
            torchrec.EmbeddingBagConfig(num_embeddings=_KEYS, embedding_dim=3, name="tags",
                                        feature_names=["tag", "item"],
                                        pooling=PoolingType.SUM)]


def _configs():
    return [torchrec.EmbeddingConfig(num_embeddings=_KEYS, embedding_dim=4, name="words",
                                     feature_names=["user", "tag"]),
            torchrec.EmbeddingConfig(num_embeddings=_KEYS, embedding_dim=4, name="goods",
                                     feature_names=["item"])]


def _copy(ours, plain):
    """The rows of now, into a collection of TorchRec."""
    with torch.no_grad():
        for name, module in plain.items():
            module.weight.copy_(ours[name].rows(torch.arange(_KEYS)))


def _distance(ours, plain):
    return max((ours[name].rows(torch.arange(_KEYS)) - module.weight).abs().max().item()
               for name, module in plain.items())


def _refusal(call, *arguments, **options):
    """The name and text of the error that the call ends with."""
    try:
        call(*arguments, **options)
    except Exception as error:  # pylint: disable=broad-except
        return f"{type(error).__name__}: {error}"
    return "accepted"


def _train(own, plain, values_of, weighted=False):
    """How far results and rows are from those of TorchRec's collection after 10 steps."""
    (ours, rows), (theirs, weights) = own, plain
    _copy(rows, weights)
    optimizer = covey.torch.EmbeddingOptimizer(ours.modules(), samples_per_step=_BATCH)
    by = torch.optim.SGD(theirs.parameters(), lr=0.5)
    apart = []
    for step in range(10):
        features = _batch(step, weighted)
        if step % 2:
            ours.prefetch(features)
        results = [values_of(each(features)) for each in (ours, theirs)]
        apart.append(max((mine - other).abs().max().item() if mine.numel() else 0.0
                         for mine, other in zip(*results)))
        for each, values in zip((optimizer, by), results):
            each.zero_grad()
            sum((value ** 2).sum() for value in values).div(_BATCH).backward()
            each.step()
    return {"apart": max(apart), "rows": _distance(rows, weights)}


def bags():
    """Pooled rows."""
    found = {}
    with covey.join() as worker, worker.connect() as client:
        for name, pooling, weighted in (("sum", PoolingType.SUM, False),
                                        ("mean", PoolingType.MEAN, False),
                                        ("weighted", PoolingType.SUM, True)):
            ours = covey.torch.torchrec.EmbeddingBagCollection(
                _bag_configs(pooling), client=client, optimizer=covey.sgd(0.5), prefix=name,
                is_weighted=weighted, contract="async")
            plain = torchrec.EmbeddingBagCollection(_bag_configs(pooling), is_weighted=weighted,
                                                    device=torch.device(on_device.DEVICE))
            found[name] = _train((ours, ours.embedding_bags), (plain, plain.embedding_bags),
                                 lambda result: [result.values()], weighted)
            features = _batch(1, weighted)
            found[name]["keys"] = ours(features).keys() == plain(features).keys()
            found[name]["first"] = max(abs(value) for value in ours.embedding_bags["tags"].rows(
                torch.arange(1000, 1100)).flatten().tolist())
    return found


def rows():
    """A row for each key."""
    with covey.join() as worker, worker.connect() as client:
        ours = covey.torch.torchrec.EmbeddingCollection(
            _configs(), client=client, optimizer=covey.sgd(0.5), need_indices=True,
            contract="async")
        plain = torchrec.EmbeddingCollection(_configs(), need_indices=True,
                                             device=torch.device(on_device.DEVICE))
        found = _train((ours, ours.embeddings), (plain, plain.embeddings),
                       lambda result: [result[name].values() for name in _FEATURES])
        features = _batch(1)
        results = [each(features) for each in (ours, plain)]
        found["keys"] = [list(result) for result in results]
        found["lengths"] = all(torch.equal(results[0][name].lengths(), results[1][name].lengths())
                               for name in _FEATURES)
        found["indices"] = all(torch.equal(results[0][name].weights(), features[name].values())
                               for name in _FEATURES)
        return found


def mistakes():
    """What is said to each of them."""
    said = {}
    with covey.join() as worker, worker.connect() as client:
        def refused(**change):
            config = torchrec.EmbeddingBagConfig(**{
                "num_embeddings": _KEYS, "embedding_dim": 4, "name": "refused", **change})
            return _refusal(covey.torch.torchrec.EmbeddingBagCollection, [config, config],
                            client=client, optimizer=covey.sgd(0.5), contract="async")

        said["init_fn"] = refused(init_fn=torch.nn.init.zeros_)
        said["data_type"] = refused(data_type=DataType.INT8)
        said["name"] = refused()
        configs = _configs()
        configs[0].embedding_dim = 8
        said["width"] = _refusal(covey.torch.torchrec.EmbeddingCollection, configs, client=client,
                                 optimizer=covey.sgd(0.5))
    return said


torch.set_num_threads(1)
print(json.dumps({"rank": os.environ.get("COVEY_RANK"),
                  **{"bags": bags, "rows": rows, "mistakes": mistakes}[sys.argv[1]]()}))
