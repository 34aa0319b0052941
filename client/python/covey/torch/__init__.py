# SPDX-License-Identifier: Apache-2.0
"""Covey for PyTorch 1.13 and later.

    worker = covey.join()
    optimizer = covey.torch.DistributedOptimizer(torch.optim.Adam(model.parameters(), lr=1e-3),
                                                 model.named_parameters(), worker=worker)
    loader = covey.torch.ElasticLoader(dataset, optimizer, batch_size=64, passes=5)
    for epoch in range(loader.pass_number, 5):
        for images, labels in loader:
            optimizer.zero_grad()
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()

DistributedOptimizer trains in groups: synchronous inside a group, under a contract between groups,
with the optimizer on the servers. ElasticLoader gives each example to one worker, also while workers
come and go. DiLoCo and LocalSGD make rounds of local steps with any optimizer of PyTorch. Embedding
and EmbeddingBag have their rows on the servers, found by 64-bit keys; EmbeddingBagCollection reads
those of many tables at once. EmbeddingOptimizer pushes their gradients where no
DistributedOptimizer does it. For scripts that keep DistributedDataParallel: ddp_hook, and the
backend "covey" of torch.distributed.
"""

import torch

from covey.torch import versions

versions.check(torch.__version__)

# pylint: disable=wrong-import-position
from covey.torch.buffers import sync_buffers
from covey.torch.diloco import DiLoCo, LocalSGD
from covey.torch.embedding import Embedding, EmbeddingBag
from covey.torch.embedding_collection import EmbeddingBagCollection
from covey.torch.embedding_optimizer import EmbeddingOptimizer
from covey.torch.hook import ddp_hook
from covey.torch.loader import ElasticLoader
from covey.torch.optimizer import DistributedOptimizer
from covey.torch.process_group import register_backend

__all__ = ["DiLoCo", "DistributedOptimizer", "ElasticLoader", "Embedding", "EmbeddingBag",
           "EmbeddingBagCollection", "EmbeddingOptimizer", "LocalSGD", "ddp_hook", "register_backend", "sync_buffers"]
