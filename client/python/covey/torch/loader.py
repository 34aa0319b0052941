# SPDX-License-Identifier: Apache-2.0
"""Training data for workers that come and go."""

from __future__ import annotations

import math
from typing import Any, Callable, Iterator

from torch.utils.data import Dataset, default_collate

from covey.source import DataSource
from covey.torch.diloco import DiLoCo
from covey.torch.optimizer import DistributedOptimizer


class ElasticLoader:
    """Gives each example of a data set to one worker of the job per pass.

    Iterating over it is one pass: every member of a group sees its end after the same step, and no
    example is lost or trained twice when workers come, go or differ in speed. Sizes of batches
    follow the scheduler's shares. A member that has no examples while others have some takes part
    in the group's steps inside of the iteration, so that the loop never sees an empty batch.

    With DiLoCo all batches have `batch_size` examples, and an example counts as trained when its
    round has ended. A round ends early on a member that has no examples; a pass ends with a round.

    Examples are read in this process. The loop must call optimizer.step() once per batch.
    """

    def __init__(self, dataset: Dataset[Any], optimizer: DistributedOptimizer | DiLoCo, *,
                 batch_size: int, name: str = "train", item_examples: int | None = None, seed: int = 1,
                 collate_fn: Callable[[list[Any]], Any] = default_collate) -> None:
        """The same arguments on all workers.

        Args:
            dataset: with len() and indices.
            optimizer: whose steps train the batches.
            batch_size: examples per member and step, where all members are equally fast.
            name: unique in the job.
            item_examples: examples that are given out together; None = a batch.
            seed: of the order, which is another one in each pass; 0 = the data set's own.
            collate_fn: makes a batch of a list of examples.
        """
        self._dataset = dataset
        self._optimizer = optimizer
        self._batch_size = batch_size
        self._name = name
        self._item_examples = item_examples or batch_size
        self._seed = seed
        self._collate = collate_fn
        self._passes = 0

    def __len__(self) -> int:
        """About how many batches this worker gets per pass."""
        examples = len(self._dataset)
        return math.ceil(examples / (self._batch_size * self._optimizer.worker.size))

    def __iter__(self) -> Iterator[Any]:
        self._passes += 1
        source = DataSource(
            self._optimizer.worker, f"{self._name}/{self._passes}",
            examples=len(self._dataset),
            item_examples=self._item_examples,
            seed=0 if self._seed == 0 else self._seed * 1_000_003 + self._passes)
        try:
            yield from self._batches(source)
        finally:
            source.close()

    def _batches(self, source: DataSource) -> Iterator[Any]:
        optimizer = self._optimizer
        step = optimizer.distributed_step
        while True:
            group_batch = self._batch_size * optimizer.worker.group.size
            # Shares are of a step; in a round each member makes steps of its own.
            positions = source.take(self._batch_size if isinstance(optimizer, DiLoCo)
                                    else step.samples_for(group_batch))
            if source.done and source.meet_at_end(step):
                return
            if len(positions) == 0:
                optimizer.idle_step()
                source.finish(0)
                continue
            optimizer.samples = len(positions)
            before = optimizer.steps_taken
            yield self._collate([self._dataset[int(position)] for position in positions])
            if optimizer.steps_taken == before:
                raise RuntimeError("the batch was not trained: call optimizer.step() once per batch")
            source.finish(optimizer.unsynced_steps if isinstance(optimizer, DiLoCo) else 0)
