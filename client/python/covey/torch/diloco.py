# SPDX-License-Identifier: Apache-2.0
"""Steps of one's own with any optimizer of PyTorch, and an outer optimizer on the servers."""

from __future__ import annotations

from typing import Any, Callable, Iterable

import torch

from covey.definitions import Optimizer, TableSpec, nesterov, sgd
from covey.step import Step
from covey.torch.optimizer import _plain
from covey.torch.staging import host_copy
from covey.worker import Worker


class DiLoCo(torch.optim.Optimizer):
    """Rounds of local steps (local SGD, Stich 2019; DiLoCo, Douillard et al. 2023).

        optimizer = covey.torch.DiLoCo(torch.optim.RAdam(model.parameters(), lr=1e-3),
                                       model.named_parameters(), worker=worker, sync_every=32)

    Each worker makes `sync_every` steps with an optimizer of PyTorch, without any communication.
    Then the round ends within step(). How far each parameter has moved, its value at the start of
    the round minus its value now, is averaged over the members of the group, weighted by the
    samples of their rounds, and pushed once for the group. The servers average over groups, as the
    contract says, and apply the outer optimizer to the mean as to a gradient. All members begin the
    next round with the new values: the same bits.

    The state of the local optimizer, such as Adam's moments, stays with each worker. It is neither
    averaged nor on the servers, and state_dict() has it. Schedulers of PyTorch work, and set the
    local learning rate. Parameters may be on any device and of any type of floating point.

    All members of a group end equally many rounds. A member that dies in a round takes its steps of
    that round with it; the others' count. A worker that joins begins with the servers' values and
    a new local state, and the group's round ends when it, too, has made its steps.

    SGD, Adam and AdamW can also take local steps in which the group averages each gradient:
    DistributedOptimizer(..., contract="local:32").

    Attributes:
        worker: as given.
        samples: examples behind the next step's gradient; they weigh it.
        loss: the last step's mean loss if the program sets it, for `covey status`.
        steps_taken: calls of step() that have ended.
        unsynced_steps: of these, the ones whose changes the other workers do not have yet.
    """

    def __init__(self, optimizer: torch.optim.Optimizer,
                 named_parameters: Iterable[tuple[str, torch.nn.Parameter]], *, worker: Worker,
                 sync_every: int, outer: Optimizer | None = None, contract: str = "bsp",
                 quorum: int = 0, grace: float = 0.0, prefix: str = "model",
                 wire: str = "float32", samples_per_step: int | None = None, replicas: int = 0) -> None:
        """All members of the job make it with the same arguments. Training begins with the model of
        the member that comes first, and the others' models become equal to it.

        Args:
            optimizer: any of PyTorch's; it goes on as it is, but do not call its step() any more.
            named_parameters: model.named_parameters(); all parameters of the optimizer.
            worker: from covey.join().
            sync_every: local steps per round.
            outer: runs on the servers; None = covey.nesterov(0.7, 0.9).
            contract: how groups relate: with "bsp" a round waits for all groups; "ssp:2", "async"
                and "buffered" wait less.
            quorum: with "bsp": a round waits for so many groups, and `grace` seconds for the others,
                whose changes count in the next round; 0 = all.
            grace: in seconds.
            prefix: tables are called prefix/name.
            wire: how changes travel in the group, and to the servers unless there is a quorum:
                "float32", "float16", "bfloat16", "scaled-float16", "int8", "float8" or
                "topk".
            samples_per_step: examples behind each gradient; None = as ElasticLoader gave out, or as
                `optimizer.samples` says.
            replicas: servers that hold each shard; 0 = two where there are two servers.
        """
        if sync_every < 1:
            raise ValueError(f"sync_every is {sync_every}; use 1 or more")
        if quorum and contract != "bsp":
            raise ValueError(f"quorum is {quorum}, which only contract 'bsp' has; the contract is "
                             f"{contract!r}")
        if contract.startswith("local"):
            raise ValueError(f"contract is {contract!r}, but sync_every says how long rounds are; use "
                             "'bsp', and quorum= and grace= where rounds should not wait for all")
        super().__init__(optimizer.param_groups, optimizer.defaults)
        self.worker = worker
        self.samples = samples_per_step
        self.loss: float | None = None
        self.steps_taken = 0
        self.unsynced_steps = 0
        self._local = optimizer
        self._adopt_local()
        self._sync_every = sync_every
        self._samples_in_round = 0
        names = {parameter: _plain(name) for name, parameter in named_parameters}
        self._parameters = [parameter for group in self.param_groups
                            for parameter in group["params"] if parameter.requires_grad]
        # The outer values, which are those at the start of the round.
        self._outer = [host_copy(parameter) for parameter in self._parameters]
        # A quorum is a property of rounds, which the contract "local" has: here rounds of one step,
        # which moves a group's values by the mean change.
        rounds = f"local:1,quorum={quorum},grace={round(grace * 1000)}ms" if quorum else contract
        tensors = []
        for parameter, values in zip(self._parameters, self._outer):
            if parameter not in names:
                raise ValueError(f"a parameter of shape {tuple(parameter.shape)} is not among "
                                 "named_parameters; pass model.named_parameters()")
            if not parameter.is_floating_point():
                raise ValueError(f"parameter {names[parameter]} is {parameter.dtype}; only types of "
                                 "floating point are supported")
            tensors.append((TableSpec(
                f"{prefix}/{names[parameter]}", tuple(parameter.shape), outer or nesterov(0.7, 0.9),
                rounds, inner_optimizer=sgd(1.0) if quorum else None, initializer="given", wire=wire,
                replicas=replicas), values))
        self._step = Step(worker, tensors)
        self._land()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Makes a step with the local optimizer; ends the round after the last one of it."""
        if self.samples is None:
            raise ValueError("how many examples are behind this gradient? Pass samples_per_step=, "
                             "set optimizer.samples before step(), or use ElasticLoader")
        loss = self._local.step(closure) if closure is not None else self._local.step()
        self._samples_in_round += self.samples
        self.unsynced_steps += 1
        if self.unsynced_steps >= self._sync_every:
            self.synchronize(loss)
        self.steps_taken += 1
        return loss

    def synchronize(self, loss: Any = None) -> None:
        """Ends the round now, also one without a step. All members of the group call it.

        Call it before evaluating or saving, and at the end of training. ElasticLoader does so at the
        end of each pass.
        """
        self._step.begin(self._samples_in_round)
        for number in reversed(range(len(self._parameters))):
            self._step.submit(number, self._change(number))
        for number in range(len(self._parameters)):
            self._step.wait(number)
        self._land()
        known = self.loss if loss is None else float(loss)
        self._step.report(known if self._samples_in_round else None)
        self._samples_in_round = 0
        self.unsynced_steps = 0

    def idle_step(self) -> None:
        """Ends the round with the steps that this worker has made; for ElasticLoader."""
        self.synchronize()

    def refresh(self) -> None:
        """Gets the newest values, in place of those of this round. All members of the group call
        it, right after synchronize()."""
        self._step.refresh()
        self._land()

    def state_dict(self) -> dict[str, Any]:
        """That of the local optimizer."""
        state: dict[str, Any] = self._local.state_dict()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Into the local optimizer."""
        self._local.load_state_dict(state_dict)
        self._adopt_local()

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """ValueError once the optimizer exists: its tables do."""
        if hasattr(self, "_step"):
            raise ValueError("parameters cannot be added any more; make the optimizer with all of them")
        super().add_param_group(param_group)

    def __deepcopy__(self, _: Any) -> Any:
        raise TypeError("a DiLoCo optimizer cannot be copied; make one per worker")

    def __reduce__(self) -> Any:
        raise TypeError("a DiLoCo optimizer cannot be pickled; save its state_dict()")

    @property
    def distributed_step(self) -> Step:
        """The step underneath, one per round: its number, samples_for and so on."""
        return self._step

    def close(self) -> None:
        """Ends the optimizer; before the worker is closed. What was not synchronized is lost."""
        self._step.close()

    def _adopt_local(self) -> None:
        # The same objects, so that schedulers, clipping and zero_grad() reach the local optimizer.
        self.param_groups = self._local.param_groups
        self.state = self._local.state
        self.defaults = self._local.defaults

    def _change(self, number: int) -> torch.Tensor:
        """Start of the round minus now. The start is what was copied into the parameter."""
        parameter = self._parameters[number].detach()
        start = self._outer[number].to(parameter.device, parameter.dtype)
        wide = torch.promote_types(parameter.dtype, torch.float32)
        return (start.to(wide) - parameter.to(wide)).to("cpu", torch.float32).contiguous()

    def _land(self) -> None:
        with torch.no_grad():
            for parameter, values in zip(self._parameters, self._outer):
                parameter.copy_(values)


class LocalSGD(DiLoCo):
    """DiLoCo whose rounds end with the mean of all workers' parameters: the outer optimizer is SGD
    with a rate of 1."""

    def __init__(self, optimizer: torch.optim.Optimizer,
                 named_parameters: Iterable[tuple[str, torch.nn.Parameter]], *, worker: Worker,
                 sync_every: int, **given: Any) -> None:
        """The arguments of DiLoCo, without `outer`."""
        if "outer" in given:
            raise ValueError("LocalSGD takes means and has no outer optimizer; use DiLoCo")
        super().__init__(optimizer, named_parameters, worker=worker, sync_every=sync_every,
                         outer=sgd(1.0), **given)
