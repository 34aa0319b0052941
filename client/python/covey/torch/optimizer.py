# SPDX-License-Identifier: Apache-2.0
"""An optimizer whose updates the servers make, or the program with the group's gradient."""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
from typing import Any, Callable, Iterable, Iterator

import torch

from covey.client import Client, TableState
from covey.definitions import Optimizer, TableSpec, nesterov, sgd
from covey.errors import FailedPrecondition, NotFound
from covey.step import Step
from covey.torch.embedding_optimizer import EmbeddingOptimizer
from covey.torch.gradients import on_accumulated, spent
from covey.torch.staging import TYPES, Staging, host_copy
from covey.torch.translation import (check_finite, count_in, slot_names, slots_in, state_of,
                                     translate)
from covey.worker import Worker

_log = logging.getLogger("covey")
_WRAPPERS = ("module.", "_orig_mod.")
# Optimizers of this process whose updates the program makes: all members make the same ones.
_programs = itertools.count(1)


def _plain(name: str) -> str:
    """The parameter's name without the prefixes of DistributedDataParallel and torch.compile."""
    for prefix in _WRAPPERS:
        name = name.replace(prefix, "")
    return name


# Options of PyTorch's optimizers that the servers take from the table's definition.
_FIXED = ("momentum", "dampening", "nesterov", "betas", "eps", "weight_decay")


def _comparable(option: Any) -> Any:
    """JSON and some formats of checkpoints make lists of tuples; a flag that is absent is not set."""
    if isinstance(option, (list, tuple)):
        return tuple(option)
    return None if option is False else option


class _Slot:
    """One parameter, its table's values, and how far its gradient is in this step."""

    def __init__(self, index: int, name: str, parameter: torch.nn.Parameter,
                 group: dict[str, Any]) -> None:
        self.index = index
        self.name = name
        self.parameter = parameter
        self.group = group
        self.rate = float(group["lr"])
        # Where new values arrive. They are copied into the parameter in step(), by an operation
        # that autograd sees: a write behind its back could change gradients without an error.
        self.values = host_copy(parameter)
        self.zeros: torch.Tensor | None = None
        self.hooks: list[Any] = []
        self.arrivals = 0
        self.submitted = False
        self.seen: tuple[torch.Tensor, int] | None = None  # the gradient when it arrived last


class DistributedOptimizer(torch.optim.Optimizer):
    """Trains a model in groups, with any optimizer of PyTorch.

    It takes the place of the optimizer in a training script; see covey.torch. One table per
    parameter. The gradients of a step are averaged over the group's members, weighted by samples,
    and pushed to the servers; step() returns when the parameters have their new values.

    Other optimizers (Adadelta, RMSprop, Lion, ...), and options that the servers do not know, run in
    the program: update="program". Each member gets the mean of the group's gradients, and takes the
    same step of the plain optimizer with it. This is for one group. What else differs: state_dict()
    and load_state_dict() are the plain optimizer's own, each member saves and loads its own copy, and
    any option may change while training. A member that dies costs no step there either, but no worker
    can join once a step is over: making the optimizer then raises FailedPrecondition.

    Overlap: once a step has shown that nothing changes gradients between backward() and step(),
    each gradient leaves while backward() computes the next one. Its place is then taken by NaN, so
    that a program that does need it notices. Where gradients are clipped or changed, everything
    leaves in step(), and a warning says so once.

    Clipping: pass max_norm. torch.nn.utils.clip_grad_norm_ between backward() and step() clips the
    gradient of this member alone, before it is averaged.

    Learning rate: schedulers of PyTorch work, as does a program that sets param_groups[i]["lr"],
    before backward(). All members of a group set the same rate, also one that joins later. With
    several groups prefer `schedule`, which counts samples instead of steps.

    Mixed precision: torch.autocast needs nothing. A GradScaler works, without overlap. A member
    whose gradients are not finite is left out of the step, and its scaler backs off; the other
    members' gradients count.

    GPUs: parameters may be on the CPU or on a GPU, a model's own on several. Gradients leave a GPU
    while it computes the next ones, and travel from page-locked host memory, which has room for the
    model's gradients and values; collectives between GPUs (NCCL) are not used.

    Types: parameters are float32, bfloat16 or float16. The servers keep float32 in any case, and
    update that; a parameter of 16 bits is rounded from it after each step. With update="program" the
    plain optimizer updates the parameters as they are.

    Not supported, with an error that says so: options beside the rate that change while the servers
    update (OneCycleLR needs cycle_momentum=False), LBFGS, sparse gradients, parameters of other
    types, deepcopy and pickle.

    Embeddings: step() pushes the gradients of the modules in `embeddings`, each member its own,
    before its last gradient of a parameter leaves. So once step() returns, the servers have those
    of all members that took part; with lag=1, those of the step before. max_norm and gradient_norm
    are of the parameters alone, and a GradScaler is refused, because it does not see rows. The
    learning rates of rows are those of their tables.

    A parameter without a gradient in a step counts as one with a gradient of zero. Not thread-safe.
    """

    # As torch.amp.GradScaler asks: it sets found_inf and grad_scale, and calls step() in any case,
    # because the other members wait for this one.
    _step_supports_amp_scaling = True

    def __init__(self, optimizer: torch.optim.Optimizer,
                 named_parameters: Iterable[tuple[str, torch.nn.Parameter]], *, worker: Worker,
                 update: str = "auto", contract: str | None = None, prefix: str = "model",
                 wire: str = "float32", value_wire: str = "float32",
                 schedule: dict[str, Any] | None = None, outer: Optimizer | None = None,
                 accumulate: int = 1, samples_per_step: int | None = None, lag: int = 0,
                 overlap: bool | str = "auto", replicas: int = 0,
                 max_norm: float | None = None, combine: str = "mean",
                 autotune: bool = False,
                 embeddings: Iterable[torch.nn.Module] = ()) -> None:
        """All members of the job make it with the same arguments. Training begins with the model of
        the member that comes first, and the others' models become equal to it.

        Args:
            optimizer: names the parameters and options. Where it has a state, which it has loaded,
                training goes on from that: from the state and the model of the member that comes
                first. With update="program" only the model is the first member's, so all members
                load the same state.
            named_parameters: model.named_parameters(); all parameters of the optimizer.
            worker: from covey.join().
            update: "servers", for SGD, Adagrad, Adam and AdamW; "program", for every optimizer;
                "auto": the servers where they know the optimizer and its options.
            contract: how groups relate: "bsp", "ssp:2", "async", "buffered" or "local:16". None =
                "buffered"; with update="program" it is "bsp".
            prefix: tables are called prefix/name.
            wire: how gradients travel: "float32", "float16", "bfloat16", "scaled-float16", "int8",
                "float8" or "topk".
            value_wire: how values travel back to the members, in the formats of `wire` except
                "topk"; with update="program" the mean gradients, as "bfloat16" or "scaled-float16".
                With update="servers" the model's parameters are rounded to it. Not for "local:H".
            schedule: of the learning rate, in samples: covey.cosine(...) and so on.
            outer: for "local:H", the optimizer of the groups' changes; nesterov(0.7, 0.9) if None.
            accumulate: calls of backward() per step. Divide the loss by it, as usual.
            samples_per_step: examples behind this member's gradient; None = as ElasticLoader gave
                out, or as `optimizer.samples` says.
            lag: 0, or 1: computes with the values of the step before last.
            overlap: "auto", True or False.
            replicas: servers that hold each shard; 0 = two where there are two servers.
            max_norm: in each step, the mean gradient of the group's examples is scaled down to this
                norm when it is larger: what torch.nn.utils.clip_grad_norm_ does in a program of one
                process. `gradient_norm` has the norm before.
            combine: "mean", or "adasum" for a batch that is larger than the one for which the rate
                was chosen: gradients of members that have nothing in common are added, and equal
                ones averaged.
            autotune: the group tries settings while it trains, and stays with the fastest, as
                covey.Step does. It tunes most with update="program".
            embeddings: Embedding and EmbeddingBag modules, or model.modules().
        """
        if overlap not in ("auto", True, False):
            raise ValueError(f"overlap is {overlap!r}; use 'auto', True or False")
        plain = self._plain_of(optimizer, update, contract, schedule)
        contract = contract or ("buffered" if plain is None else "bsp")
        is_local = contract.startswith("local")
        if schedule and is_local:
            raise ValueError(f"contract is {contract!r}, whose members make the steps; change the "
                             'rate with a scheduler of PyTorch, or param_groups[i]["lr"]')
        if accumulate < 1:
            raise ValueError(f"accumulate is {accumulate}; use 1 or more")
        names = {parameter: _plain(name) for name, parameter in named_parameters}
        super().__init__(optimizer.param_groups, optimizer.defaults)
        self.worker = worker
        self.samples = samples_per_step
        self.loss: float | None = None
        self._embeddings = EmbeddingOptimizer(embeddings)
        self._accumulate = accumulate
        self._is_learning = overlap == "auto"
        self._overlaps = overlap is True
        self._syncs = True
        self._begun = False
        self.steps_taken = 0  # calls of step() that have ended
        self._has_schedule = bool(schedule)
        self._fixed = [self._fixed_of(group) for group in self.param_groups]
        self._kind = type(optimizer)
        self._plain = plain  # None: the servers update
        if plain is not None:
            self._share(plain)
            # Values of an earlier run, or of an optimizer before this one, are not this one's.
            prefix = f"{prefix}-{worker.group.id}.{next(_programs)}"
        self._is_local = is_local
        self._value_wire = value_wire
        self._prefix = prefix
        self._slots: list[_Slot] = []
        self._staging = Staging(self._leave)
        self._specs: list[TableSpec] = []
        self._options: dict[str, Any] = {"lag": lag, "max_gradient_norm": max_norm,
                                         "combine": combine, "autotune": autotune,
                                         "update": "servers" if plain is None else "program"}
        for group in self.param_groups:
            # A rate that the program may change travels with each gradient, as the factor of 1.
            # A program's table keeps its first values, and no state.
            server_side = (sgd(1.0) if plain is not None else
                           translate(optimizer, group if schedule else {**group, "lr": 1.0}))
            for parameter in group["params"]:
                if not parameter.requires_grad:
                    continue
                slot = self._new_slot(parameter, names, group)
                spec = TableSpec(
                    f"{prefix}/{slot.name}", tuple(parameter.shape),
                    (outer or nesterov(0.7, 0.9)) if is_local else server_side, contract,
                    schedule=schedule or {},
                    inner_optimizer=server_side if is_local else None,
                    initializer="given", wire=wire, value_wire=value_wire,
                    replicas=replicas)
                self._slots.append(slot)
                self._specs.append(spec)
        if len({slot.name for slot in self._slots}) < len(self._slots):
            raise ValueError("two parameters have one name; pass model.named_parameters()")
        self._open(self._states_in(optimizer.state_dict())
                   if optimizer.state and plain is None else {})
        for slot in self._slots:
            slot.hooks = on_accumulated(slot.parameter, functools.partial(self._arrived, slot))

    def _open(self, states: dict[int, TableState]) -> None:
        """Makes the tables, with these states where nobody has given any before, and the step."""
        if states:
            with self.worker.connect() as client:
                client.initialize((client.create_table(spec), states.get(slot.index, slot.values))
                                  for spec, slot in zip(self._specs, self._slots))
        factors: list[float] | None = None
        if self._plain is None:
            for slot in self._slots:
                slot.rate = float(slot.group["lr"])
            factors = [1.0 if self._has_schedule else slot.rate for slot in self._slots]
        self._step = Step(self.worker, [(spec, slot.values) for spec, slot
                                        in zip(self._specs, self._slots)],
                          rate_factors=factors, **self._options)
        self._land()

    def _new_slot(self, parameter: torch.nn.Parameter,
                  names: dict[torch.nn.Parameter, str], group: dict[str, Any]) -> _Slot:
        if parameter not in names:
            raise ValueError(f"a parameter of shape {tuple(parameter.shape)} is not among "
                             "named_parameters; pass model.named_parameters()")
        if parameter.dtype not in TYPES:
            raise ValueError(f"parameter {names[parameter]} is {parameter.dtype}; the servers keep "
                             "float32, for parameters of " + ", ".join(map(str, TYPES)))
        return _Slot(len(self._slots), names[parameter], parameter, group)

    # --- As torch.optim.Optimizer ---

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Sends what has not left yet, and waits for the new values.

        Args:
            closure: computes the loss and its gradients once, and returns the loss.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if self._plain is None:
            self._check_options()
        is_finite = self._unscale()
        self._begin(counts=is_finite)
        self._watch()
        self._exchange()
        known = self.loss if loss is None else float(loss)
        self._step.report(known if is_finite else None)
        for slot in self._slots:
            slot.parameter.grad = None
        self._forget()
        self.steps_taken += 1
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops gradients. FailedPrecondition: some have left; call step() first."""
        if self._begun:
            raise FailedPrecondition(
                "zero_grad() after gradients have left and before step(): the group is in this "
                "step already; call step(), or make the optimizer with overlap=False")
        for slot in self._slots:
            slot.arrivals = 0
        self._embeddings.zero_grad()
        super().zero_grad(set_to_none)

    def state_dict(self) -> dict[str, Any]:
        """What the state_dict of the plain optimizer would be after the same steps.

        It reads the state from the servers, between two steps; one member is enough. A plain
        optimizer of the same kind loads it, and so does load_state_dict() here. Each part of a
        parameter is as of one update; while other groups train, parts may differ by some updates.
        Beside the plain optimizer's entries it has "samples", the training examples so far.

        With update="program" it is that of the plain optimizer, which each member has.
        """
        if self._plain is not None:
            plain: dict[str, Any] = self._plain.state_dict()
            return plain
        if self._is_local:
            raise FailedPrecondition("under 'local', members keep the state of the inner optimizer, "
                                     "each for its part; train with another contract to save it")
        if self._begun:
            raise RuntimeError("a step is under way; call step() before state_dict()")
        state: dict[str, Any] = super().state_dict()
        numbers = {parameter: number for number, parameter in enumerate(
            parameter for group in self.param_groups for parameter in group["params"])}
        with self.worker.connect() as client:
            reads = []
            for slot in self._slots:
                table = client.find_table(f"{self._prefix}/{slot.name}")
                arrays = torch.empty((1 + table.slots, *table.shape), dtype=torch.float32,
                                     device="cpu")
                reads.append((slot, table.pull_state(arrays)))
            state["samples"] = 0
            for slot, read in reads:
                result = read.wait()
                state["samples"] = max(state["samples"], result.samples)
                if result.version > 0:
                    state["state"][numbers[slot.parameter]] = state_of(
                        self._kind, list(result.values[1:]), result.version)
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Gives the servers a state: what state_dict() here, or of the plain optimizer, has returned.

        All members of all groups call it with the same state, after they have made the optimizer,
        before the first step, and before other workers may join: its tables are made again, with the
        model's values of now. A worker that comes later finds that training is under way, and takes
        the servers' values and state; so loading does no harm there. Learning rates become those of
        state_dict; with `schedule`, which counts examples, state_dict must have "samples".

        A plain optimizer that has loaded its state before it was passed to this class has the same
        effect, and waits for no other member.

        With update="program" the plain optimizer loads it, between any two steps: all members load the
        same one, and no member waits for another.

        Raises:
            ValueError: a parameter's shape, the optimizer, or an option beside the rate differs;
                samples are missing; or a number is not finite. Nothing has changed then.
            FailedPrecondition: steps were made; the contract is "local", under which members keep
                their state; or values travel in fewer bits (value_wire), so that the model has
                rounded ones.
            DeadlineExceeded: a member has not called it; start the job again.
        """
        if self._plain is not None:
            if self._begun:
                raise FailedPrecondition("a step is under way; call step() before load_state_dict()")
            self._plain.load_state_dict(state_dict)
            self._share(self._plain)
            return
        if self._is_local:
            raise FailedPrecondition("under 'local', members keep the state of the inner optimizer, "
                                     "each for its part; load it with another contract")
        if self._begun or self.steps_taken > 0:
            raise FailedPrecondition("steps were made before load_state_dict(); call it right after "
                                     "the optimizer is made, on all members")
        if self._value_wire != "float32":
            raise FailedPrecondition(f"value_wire is {self._value_wire!r}, so the model has rounded "
                                     "values by now; let the plain optimizer load the state before "
                                     "it is passed to DistributedOptimizer")
        saved = self._groups_in(state_dict)
        states = self._states_in(state_dict)
        for group, options in zip(self.param_groups, saved):
            group.update({name: value for name, value in options.items()
                          if name != "params" and name not in _FIXED})
        with self.worker.connect() as client:
            is_under_way = self._has_updates(client)
        if is_under_way:
            _log.info("training of the tables %s/... is under way: they keep their state",
                      self._prefix)
            self._land()
            return
        self._step.close()
        self.worker.barrier(f"{self._prefix}: steps are closed")
        with self.worker.connect() as client:
            for spec in self._specs:
                with contextlib.suppress(NotFound):
                    client.drop_table(spec.name)
        self.worker.barrier(f"{self._prefix}: tables are dropped")
        self._staging.settle()
        for slot in self._slots:
            slot.values.copy_(slot.parameter.detach())
        self._open(states)
        with self.worker.connect() as client:
            if states and not self._has_updates(client):
                raise FailedPrecondition("a worker that joined meanwhile began the tables without "
                                         "the state; start the job again")

    def __deepcopy__(self, _: Any) -> Any:
        raise TypeError("a DistributedOptimizer cannot be copied; make one per worker")

    def __reduce__(self) -> Any:
        raise TypeError("a DistributedOptimizer cannot be pickled; save its state_dict()")

    # --- More ---

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Around backward(): its gradients are added up here, and leave with a later one."""
        before, self._syncs = self._syncs, False
        try:
            yield
        finally:
            self._syncs = before

    def refresh(self) -> None:
        """Gets the newest values. All members of the group call it, between steps.

        InvalidArgument: with update="program", where each member has them.
        """
        self._embeddings.flush()
        self._staging.settle()
        self._step.refresh()
        self._land()

    def idle_step(self) -> None:
        """Takes part in the group's step without examples."""
        self.samples, samples = 0, self.samples
        try:
            for slot in self._slots:
                slot.parameter.grad = None
            self._begin()
            self._exchange()
            self._step.report(None)
        finally:
            self.samples = samples
            self._forget()

    @property
    def distributed_step(self) -> Step:
        """The step underneath: its number, samples_for and so on."""
        return self._step

    @property
    def gradient_norm(self) -> float | None:
        """The norm of the group's gradient in the last step, before max_norm clipped it."""
        return self._step.gradient_norm

    @property
    def overlaps(self) -> bool:
        """Whether gradients leave during backward()."""
        return self._overlaps

    def close(self) -> None:
        """Ends the optimizer; before the worker is closed."""
        self._embeddings.flush()
        self._step.close()

    # --- Inside ---

    def _arrived(self, slot: _Slot) -> None:
        """Autograd has added to the parameter's gradient."""
        gradient = slot.parameter.grad
        if slot.submitted:
            raise RuntimeError(
                f"the gradient of {slot.name} arrived again after it had left: backward() ran more "
                f"than accumulate={self._accumulate} times before step(), or a layer is computed "
                "twice; pass accumulate=, or overlap=False")
        if gradient is not None:
            slot.seen = (gradient, gradient._version)
        if not self._syncs:
            return
        slot.arrivals += 1
        # One gradient stays until those of rows have left: others' steps end after it.
        stays = len(self._embeddings) > 0 and slot is self._slots[0]
        if self._overlaps and slot.arrivals == self._accumulate and not stays:
            self._begin()
            self._submit(slot)
            slot.parameter.grad = spent(slot.parameter)

    def _begin(self, counts: bool = True) -> None:
        if self._begun:
            return
        if self.samples is None:
            raise ValueError("how many examples are behind this gradient? Pass samples_per_step=, "
                             "set optimizer.samples before backward(), or use ElasticLoader")
        self._embeddings.samples = self.samples if counts else 0
        self._staging.settle()
        self._step.begin(self._embeddings.samples)
        self._begun = True
        if self._plain is not None:
            return
        for slot in self._slots:
            rate = float(slot.group["lr"])
            if rate != slot.rate and not self._has_schedule:
                self._step.set_rate_factor(slot.index, rate)
                slot.rate = rate

    def _submit(self, slot: _Slot) -> None:
        gradient = slot.parameter.grad
        if gradient is None:
            if slot.zeros is None:
                slot.zeros = torch.zeros_like(slot.values)
            gradient = slot.zeros
        if gradient.is_sparse:
            raise ValueError(f"the gradient of {slot.name} is sparse; use a dense embedding")
        self._staging.send(slot.index, gradient)
        slot.submitted = True

    def _leave(self, index: int, gradient: torch.Tensor) -> None:
        """A gradient has come to host memory."""
        self._step.submit(index, gradient)

    def _exchange(self) -> None:
        """Sends what has not left yet, and takes the new values."""
        self._embeddings.step()
        for slot in reversed(self._slots):
            if not slot.submitted:
                self._submit(slot)
        self._staging.flush()
        for slot in self._slots:
            self._step.wait(slot.index)
        if self._plain is None:
            self._land()
        else:
            self._take_step(self._plain)

    def _unscale(self) -> bool:
        """What torch.amp.GradScaler leaves to the optimizer; whether the gradients are finite."""
        found = getattr(self, "found_inf", None)
        if found is None:
            return True
        if self._begun:
            raise ValueError("gradients left in backward(), before the GradScaler could unscale them; "
                             "make the optimizer with overlap=False")
        if len(self._embeddings) > 0:
            raise ValueError("a GradScaler does not see the gradients of rows; train the embeddings "
                             "without it")
        self._is_learning = False
        scale = getattr(self, "grad_scale", None)  # None: the program has called unscale_()
        if scale is not None:
            for slot in self._slots:
                if slot.parameter.grad is not None:
                    slot.parameter.grad.div_(scale)
        return float(found) == 0

    def _watch(self) -> None:
        """Learns from the first step whether the program changes gradients before step()."""
        if not self._is_learning:
            return
        self._is_learning = False
        changed = [slot.name for slot in self._slots if slot.seen is not None and (
            slot.parameter.grad is not slot.seen[0]
            or slot.parameter.grad._version != slot.seen[1])]
        self._overlaps = not changed
        if changed:
            _log.warning(
                "the gradient of %s was changed between backward() and step() (clipping or "
                "scaling?): gradients leave in step(), without overlap; overlap=False says that "
                "this is meant. With several members, each changes its own gradient before the "
                "mean is taken; max_norm= clips the mean", changed[0])

    def _land(self) -> None:
        self._staging.land((slot.parameter, slot.values) for slot in self._slots)

    def _take_step(self, plain: torch.optim.Optimizer) -> None:
        """The plain optimizer's step with the group's gradients; those of no examples are none."""
        counts = False
        for slot in self._slots:
            has_mean = self._step.mean_samples(slot.index) > 0
            slot.parameter.grad = (slot.values.to(slot.parameter.device, slot.parameter.dtype)
                                   if has_mean else None)
            counts |= has_mean
        if counts:
            plain.step()
        for slot in self._slots:
            slot.parameter.grad = None

    def _share(self, plain: torch.optim.Optimizer) -> None:
        """Groups and state are the plain optimizer's: schedulers and programs change both at once."""
        self.param_groups = plain.param_groups
        self.state = plain.state

    def _forget(self) -> None:
        self._begun = False
        for slot in self._slots:
            slot.arrivals = 0
            slot.submitted = False
            slot.seen = None

    def _has_updates(self, client: Client) -> bool:
        """Whether a table is not as its initial values alone have left it."""
        return any(client.find_table(spec.name).pull(torch.empty_like(slot.values)).wait().version
                   for spec, slot in zip(self._specs, self._slots))

    def _groups_in(self, state_dict: dict[str, Any]) -> list[dict[str, Any]]:
        """The parameter groups of a state, whose sizes and options are those here.

        Raises ValueError where they are not.
        """
        saved: list[dict[str, Any]] = state_dict["param_groups"]
        sizes, own = ([len(group["params"]) for group in groups]
                      for groups in (saved, self.param_groups))
        if sizes != own:
            raise ValueError(f"the state is of parameter groups of {sizes} parameters, and this "
                             f"optimizer has groups of {own}; load the state of the same model")
        for number, (group, other) in enumerate(zip(self.param_groups, saved)):
            for option in (*_FIXED, "amsgrad", "maximize", "lr_decay",
                           *(["lr"] if self._has_schedule else [])):
                mine, theirs = (_comparable(each.get(option)) for each in (group, other))
                if mine != theirs:
                    raise ValueError(
                        f"{option} of parameter group {number} is {theirs} in the state, and {mine} "
                        "here; make the optimizer as the one that was saved")
        return saved

    def _states_in(self, state_dict: dict[str, Any]) -> dict[int, TableState]:
        """By the index of the slot, with the values of now; without those that made no update.

        Raises ValueError where the state, or the model, is none that the servers take.
        """
        numbers = [number for group in state_dict["param_groups"] for number in group["params"]]
        saved = dict(zip((parameter for group in self.param_groups for parameter in group["params"]),
                         numbers))
        samples = count_in(state_dict.get("samples", 0), '"samples" of the state')
        states = {}
        is_unknown = False
        for slot in self._slots:
            values = slot.parameter.detach().to("cpu", torch.float32)
            check_finite(values, f"parameter {slot.name}")
            entry = state_dict["state"].get(saved[slot.parameter])
            if not slot_names(self._kind, slot.group):
                # PyTorch keeps nothing of such a parameter, whether it was trained or not.
                is_unknown |= "samples" not in state_dict
                entry = entry or {}
            if entry is None:
                continue
            slots, updates = slots_in(self._kind, slot.group, entry, slot.parameter, slot.name)
            if updates > 0 and (slots or samples):
                states[slot.index] = TableState(torch.stack([values, *slots]), updates, samples)
        if self._has_schedule and samples == 0 and (states or is_unknown):
            raise ValueError('schedule= counts examples, and the state does not say how many: load it '
                             'by load_state_dict(), with state_dict["samples"] = examples so far')
        return states

    @staticmethod
    def _plain_of(optimizer: torch.optim.Optimizer, update: str, contract: str | None,
                  schedule: dict[str, Any] | None) -> torch.optim.Optimizer | None:
        """The optimizer, where the program is to run it; None: the servers do."""
        if update not in ("auto", "servers", "program"):
            raise ValueError(f"update is {update!r}; use 'auto', 'servers' or 'program'")
        if isinstance(optimizer, torch.optim.LBFGS):
            raise ValueError("LBFGS computes its loss several times in a step, which a group cannot; "
                             "use another optimizer")
        if update == "auto":
            if schedule or contract not in (None, "bsp"):
                return None
            try:
                for group in optimizer.param_groups:
                    translate(optimizer, {**group, "lr": 1.0})
                return None
            except ValueError as reason:
                _log.info("each member takes the optimizer's steps itself (update='program'): %s",
                          reason)
        if update == "servers":
            return None
        if contract not in (None, "bsp"):
            raise ValueError(f"contract is {contract!r}, and update='program' is for one group, under "
                             "'bsp'")
        if schedule:
            raise ValueError("schedule= is of optimizers on the servers; with update='program' use a "
                             "scheduler of PyTorch")
        return optimizer

    @staticmethod
    def _fixed_of(group: dict[str, Any]) -> dict[str, Any]:
        return {option: group[option] for option in _FIXED if option in group}

    def _check_options(self) -> None:
        for group, fixed in zip(self.param_groups, self._fixed):
            for option, value in fixed.items():
                if group[option] != value:
                    raise ValueError(
                        f"{option} was changed from {value} to {group[option]}, which the servers "
                        "do not see; only the learning rate may change while training (for "
                        "OneCycleLR pass cycle_momentum=False)")
        for slot in self._slots:
            rate = float(slot.group["lr"])
            if rate == slot.rate or not (self._begun or self._has_schedule):
                continue
            if self._has_schedule:
                raise ValueError(
                    f"the learning rate was changed from {slot.rate} to {rate}, but schedule= sets "
                    "it; use the one or the other")
            raise ValueError(
                f"the learning rate was changed from {slot.rate} to {rate} after gradients had left; "
                "change it before backward(), or make the optimizer with overlap=False")
