# SPDX-License-Identifier: Apache-2.0
"""Training data for workers that come and go."""

from __future__ import annotations

import math
from typing import Any, Callable, Iterator

from torch.utils.data import Dataset, default_collate

from covey.source import DataSource
from covey.torch.diloco import DiLoCo
from covey.torch.optimizer import DistributedOptimizer

_PASSES_MAX = 1_000_000  # of a loader that does not know its number of passes


class ElasticLoader:
    """Gives each example of a data set to one worker of the job per pass.

    Iterating over it is one pass: every member of a group sees its end after the same step, and no
    example is lost or trained twice when workers come, go or differ in speed. Sizes of batches
    follow the scheduler's shares. A member that has no examples while others have some takes part
    in the group's steps inside of the iteration, so that the loop never sees an empty batch.

        for epoch in range(loader.pass_number, epochs):
            for images, labels in loader:
                ...

    A worker that joins late begins in the pass in which its group is, and a job that continues a
    snapshot in the one in which that was made. After the last pass an iteration has no batches. An
    iteration that is left early returns what it has not trained; the next one goes on in that pass.

    With DiLoCo all batches have `batch_size` examples, and an example counts as trained when its
    round has ended. A round ends early on a member that has no examples; a pass ends with a round.

    Examples are read in this process. The loop must call optimizer.step() once per batch.
    """

    def __init__(self, dataset: Dataset[Any], optimizer: DistributedOptimizer | DiLoCo, *,
                 batch_size: int, name: str = "train", item_examples: int | None = None, seed: int = 1,
                 collate_fn: Callable[[list[Any]], Any] = default_collate,
                 passes: int | None = None) -> None:
        """The same arguments on all workers.

        Args:
            dataset: with len() and indices.
            optimizer: whose steps train the batches.
            batch_size: examples per member and step, where all members are equally fast.
            name: unique in the job.
            item_examples: examples that are given out together; None = a batch.
            seed: of the order, which is another one in each pass; 0 = the data set's own.
            collate_fn: makes a batch of a list of examples.
            passes: how many there are at most, in all runs of the job; None = 1000000, for a
                program that ends its loop by itself, or may be continued for longer.
        """
        self._dataset = dataset
        self._optimizer = optimizer
        self._batch_size = batch_size
        self._name = name
        self._item_examples = item_examples or batch_size
        self._seed = seed
        self._collate = collate_fn
        self._passes = _PASSES_MAX if passes is None else passes
        self._source: DataSource | None = None

    def __len__(self) -> int:
        """About how many batches this worker gets per pass."""
        examples = len(self._dataset)
        return math.ceil(examples / (self._batch_size * self._optimizer.worker.size))

    @property
    def pass_number(self) -> int:
        """The present pass, from 0: the one that an iteration gives next, or gives now.

        A worker that joins while its group goes on to the next pass follows it at its first batch.
        """
        return self._opened().pass_number

    def close(self) -> None:
        """Returns what is not trained; the worker's close() does it, too. An iteration opens it
        again."""
        if self._source is not None:
            self._source.close()
            self._source = None

    def __iter__(self) -> Iterator[Any]:
        source = self._opened()
        if source.pass_number >= self._passes:
            return
        is_over = False
        try:
            yield from self._batches(source)
            is_over = True
        finally:
            if not is_over:
                self.close()
        source.next_pass()

    def _opened(self) -> DataSource:
        # It stays open between passes, so that this worker keeps its place in its group's pass.
        if self._source is None:
            self._source = DataSource(
                self._optimizer.worker, self._name,
                examples=len(self._dataset),
                item_examples=self._item_examples,
                passes=self._passes,
                seed=self._seed,
                at_pass_end="meet")
        return self._source

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
            try:
                yield self._collate([self._dataset[int(position)] for position in positions])
            finally:
                # Also when the loop ends after this batch.
                if optimizer.steps_taken > before:
                    source.finish(optimizer.unsynced_steps if isinstance(optimizer, DiLoCo) else 0)
            if optimizer.steps_taken == before:
                raise RuntimeError("the batch was not trained: call optimizer.step() once per batch")
