# SPDX-License-Identifier: Apache-2.0
"""The hybrid step: synchronous inside the group, under each table's contract between groups."""

from __future__ import annotations

import math
from typing import Any, Sequence

import covey._native as _native
from covey._memory import floats
from covey._waiting import interruptible
from covey.definitions import TableSpec
from covey.worker import Worker

_UPDATE = {"servers": 0, "members": 1, "program": 2}
# "int8" is a second name of "8bit".
_FEEDBACK = {"never": 0, "8bit": 1, "int8": 1, "always": 2}
_COMBINE = {"mean": 0, "adasum": 1}


def _norm_number(norm: float | None) -> float:
    if norm == 0:
        raise ValueError("max_gradient_norm is 0, which would stop training; use None not to clip")
    return 0.0 if norm is None else float(norm)


class Step:
    """Trains a model: one table per tensor; the optimizer runs on the servers.

        step = covey.Step(worker, [(spec, values), ...])       # values are now the tables'
        while training:
            step.begin(batch_size)
            for i in reversed(range(n)):                       # as gradients become final
                step.submit(i, gradient[i])                    # mean over the batch
            for i in range(n):
                step.wait(i)                                   # values[i] are the new ones
            step.report(loss)

    With update="program" the values of a step are the group's mean gradient, weighted by samples, and
    the program updates its own parameters with it, by any rule:

        step.wait(i)
        if step.mean_samples(i) > 0:
            update(parameters[i], values[i])                   # the same on all members

    A member that dies costs no step there either: all others get the same bits. A group that has
    finished a step takes in no new member, because its parameters are in the programs.

    All members create it with the same tables in the same order. From submit until wait returns,
    gradient and values belong to the step. One call at a time, from any thread.
    """

    def __init__(self, worker: Worker, tensors: Sequence[tuple[TableSpec, Any]], *,
                 update: str = "servers", lag: int = 0, error_feedback: str = "8bit",
                 rate_factors: Sequence[float] | None = None,
                 max_gradient_norm: float | None = None, combine: str = "mean",
                 autotune: bool = False) -> None:
        """Creates the tables and gets their values.

        Args:
            worker: from covey.join().
            tensors: definition of the table and float32 values of each.
            update: "servers"; "members": no server is in the way; or "program". The last two are
                for one group and tables under "bsp".
            lag: 0, or 1: a step computes with the values of the step before last; 0 with "program".
            error_feedback: for which wire formats rounding errors are kept: "never"; "8bit", for
                int8, float8 and topk; "always".
            rate_factors: of each tensor, as for set_rate_factor; None = 1 each.
            max_gradient_norm: the group's mean gradient of each step is scaled down to this norm
                over all tensors when it is larger. Submit all tensors before you wait for one.
            combine: how the gradients of the group's members become one: by their "mean", weighted
                by samples, or by "adasum", which adds gradients that have nothing in common and
                averages equal ones. The same on all members.
            autotune: the group tries settings while it trains, and stays with the fastest: at most
                30 of 6 steps each, again whenever its members change. Sums are then taken in an
                order that depends on measured times: all members have the same bits, but two runs
                may not. The same on all members.
        """
        for argument, value, known in (("update", update, _UPDATE),
                                       ("error_feedback", error_feedback, _FEEDBACK),
                                       ("combine", combine, _COMBINE)):
            if value not in known:
                raise ValueError(f"{argument} is {value!r}; use one of {', '.join(known)}")
        self._worker = worker
        self._values = [values for _, values in tensors]
        self._gradients: list[Any] = [None] * len(tensors)
        factors = [1.0] * len(tensors) if rate_factors is None else rate_factors
        if len(factors) != len(tensors):
            raise ValueError(f"{len(factors)} rate_factors for {len(tensors)} tensors; give one each")
        flat = [part for (spec, values), factor in zip(tensors, factors)
                for part in (spec.to_json(),
                             floats(values, f"values of {spec.name}", writable=True),
                             float(factor))]
        self._native = interruptible(_native.step_create, worker._native, _UPDATE[update], lag,
                                     _FEEDBACK[error_feedback],
                                     _norm_number(max_gradient_norm), _COMBINE[combine],
                                     int(autotune), *flat)

    def close(self) -> None:
        """Waits for what is in flight, and ends the step; before the worker is closed."""
        _native.step_free(self._native)

    def __len__(self) -> int:
        return len(self._values)

    def begin(self, samples: int) -> None:
        """Begins the next step; gradients will be means over `samples` examples, possibly 0.

        A step in which no member has examples changes nothing.
        """
        _native.step_begin(self._native, samples)

    def submit(self, tensor: int, gradient: Any) -> None:
        """The gradient of tensor number `tensor` is final. Once per tensor and step."""
        memory = floats(gradient, "gradient", writable=False)
        self._gradients[tensor] = gradient
        _native.step_submit(self._native, tensor, memory)

    def set_rate_factor(self, tensor: int, factor: float) -> None:
        """Multiplies the learning rate of the tensor's table, from the next submit on.

        At least 0. All members of a group give the same one.
        """
        _native.step_set_rate_factor(self._native, tensor, factor)

    def wait(self, tensor: int, timeout: float | None = None) -> None:
        """Waits until the tensor has its new values, or for `timeout` seconds. Ctrl-C works."""
        _native.step_wait(self._native, tensor, -1.0 if timeout is None else timeout)
        self._gradients[tensor] = None

    def finish(self) -> None:
        """Waits for all tensors."""
        for tensor in range(len(self._values)):
            self.wait(tensor)
        _native.step_finish(self._native)

    def refresh(self) -> None:
        """Gets the newest values of all tensors. All members call it, between steps.

        InvalidArgument: with update="program", whose newest values are the program's own.
        """
        interruptible(_native.step_refresh, self._native)

    def mean_samples(self, tensor: int) -> int:
        """The examples of all members behind the mean gradient that the tensor got last.

        With update="program", after wait. 0: there were none, and the mean is zero.
        """
        return _native.step_mean_samples(self._native, tensor)

    def samples_for(self, group_batch: int) -> int:
        """This member's examples of the next step, when the whole group's are `group_batch`."""
        return _native.step_samples_for(self._native, group_batch)

    def report(self, loss: float | None) -> None:
        """Reports the last step's mean loss, for `covey status` and the report."""
        _native.step_report(self._native, math.nan if loss is None else loss)

    @property
    def gradient_norm(self) -> float | None:
        """The norm of the group's mean gradient in the newest step, before it was clipped.

        None without max_gradient_norm, and before the first step.
        """
        norm = _native.step_gradient_norm(self._native)
        return None if math.isnan(norm) else norm

    @property
    def number(self) -> int:
        """The step that began last, as counted by the group."""
        return _native.step_number(self._native)
