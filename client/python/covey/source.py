# SPDX-License-Identifier: Apache-2.0
"""Gives out the examples of a data set, each once per pass, to workers that come and go."""

from __future__ import annotations

from typing import Any, Literal

import covey._native as _native
from covey._waiting import interruptible
from covey.step import Step
from covey.worker import Worker

_AT_PASS_END = {"go_on": 0, "meet": 1}  # as in covey.h


class DataSource:
    """This worker's examples of a data set that all workers of the job share.

        source = covey.DataSource(worker, "digits", examples=60000, passes=2)
        while True:
            batch = source.take(step.samples_for(group_batch))      # positions; may be empty
            if source.done and source.meet_at_end(step):
                break
            ... a step of len(batch) samples; with an empty batch, of zero gradients and 0 samples
            source.finish(1)                # all batches are trained, except this one

    A program with a loop over passes meets the other members of its group at the end of each pass,
    and so begins each one together with them:

        source = covey.DataSource(worker, "digits", examples=60000, passes=20, at_pass_end="meet")
        goes_on = True
        while goes_on:
            ... as above, until meet_at_end() is true
            ... evaluate, save, change the learning rate; source.pass_number tells the pass
            goes_on = source.next_pass()

    A member without examples still takes part in steps while others have some. One call at a time,
    from any thread.
    """

    def __init__(self, worker: Worker, name: str, *, examples: int, item_examples: int = 1,
                 passes: int = 1, seed: int = 0,
                 at_pass_end: Literal["go_on", "meet"] = "go_on") -> None:
        """Opens the data set, with the same arguments on all workers.

        Args:
            worker: from covey.join().
            name: unique in the job for each run over the data set.
            examples: their number.
            item_examples: examples that are given out together.
            passes: over the data set.
            seed: of the order in each pass; 0 = the data set's own order.
            at_pass_end: "go_on" = a pass follows the one before without a break; "meet" = only
                after all members of the group have met. The source then begins in the pass in which
                its group is, or else in the first one that the job has not finished.
        """
        if at_pass_end not in _AT_PASS_END:
            raise ValueError(f"at_pass_end is one of {', '.join(_AT_PASS_END)}, not {at_pass_end!r}")
        self._native = interruptible(_native.source_open, worker._native, name, examples,
                                     item_examples, passes, seed, _AT_PASS_END[at_pass_end])
        self._worker = worker
        worker._parts.add(self)

    def close(self) -> None:
        """Reports the trained examples, and returns the rest. The worker's close() does it, too."""
        _native.source_close(self._native)

    def take(self, samples: int) -> Any:
        """The next positions, as an array of uint32: `samples`, or fewer when fewer are there."""
        import numpy  # here, because programs without a data source need not have it
        return numpy.frombuffer(_native.source_take(self._native, samples), numpy.uint32)

    def finish(self, in_progress: int) -> None:
        """All batches that were taken are trained, except the newest `in_progress`."""
        _native.source_finish(self._native, in_progress)

    @property
    def done(self) -> bool:
        """All passes are finished, on all workers together; with "meet" the present one is."""
        return _native.source_done(self._native)

    @property
    def pass_number(self) -> int:
        """With "meet": the present pass, from 0; `passes` = all are over. With "go_on": 0.

        A member that joins while its group goes on to the next pass follows it, before its first
        examples.
        """
        return _native.source_pass(self._native)

    @property
    def examples_finished(self) -> int:
        """Of all passes so far, on all workers."""
        return _native.source_examples_finished(self._native)

    def meet_at_end(self, step: Step) -> bool:
        """Once done, instead of the next step. False: make one more step, without samples."""
        over: bool = interruptible(_native.source_meet_at_end, self._native, step._native)
        return over

    def next_pass(self) -> bool:
        """With "meet", once meet_at_end() was true: begins the next pass. False: that was the last.

        Raises:
            InvalidArgument: the present pass is not over.
        """
        goes_on: bool = interruptible(_native.source_next_pass, self._native)
        return goes_on
