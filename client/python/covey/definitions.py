# SPDX-License-Identifier: Apache-2.0
"""Definitions of tables: optimizer, learning rate, contract, first values."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Optimizer:
    """An optimizer with its learning rate; made by sgd(), adam() and so on."""

    kind: str
    learning_rate: float
    parameters: tuple[tuple[str, float], ...] = ()

    def _fields(self) -> dict[str, Any]:
        return {"kind": self.kind, **dict(self.parameters)}


def _optimizer(kind: str, learning_rate: float, **parameters: float) -> Optimizer:
    return Optimizer(kind, float(learning_rate),
                     tuple((name, float(value)) for name, value in parameters.items()))


def sgd(learning_rate: float, *, weight_decay: float = 0.0) -> Optimizer:
    """Plain stochastic gradient descent."""
    return _optimizer("SGD", learning_rate, weight_decay=weight_decay)


def momentum(learning_rate: float, momentum: float = 0.9, *,
             weight_decay: float = 0.0) -> Optimizer:
    """SGD with heavy-ball momentum, as torch.optim.SGD(momentum=...)."""
    return _optimizer("MOMENTUM", learning_rate, momentum=momentum, weight_decay=weight_decay)


def nesterov(learning_rate: float, momentum: float = 0.9, *,
             weight_decay: float = 0.0) -> Optimizer:
    """SGD with Nesterov's momentum."""
    return _optimizer("NESTEROV", learning_rate, momentum=momentum, weight_decay=weight_decay)


def adagrad(learning_rate: float, *, epsilon: float = 1e-10,
            weight_decay: float = 0.0) -> Optimizer:
    """Adagrad."""
    return _optimizer("ADAGRAD", learning_rate, epsilon=epsilon, weight_decay=weight_decay)


def adam(learning_rate: float, betas: tuple[float, float] = (0.9, 0.999), *,
         epsilon: float = 1e-8, weight_decay: float = 0.0) -> Optimizer:
    """Adam, with weight decay as a part of the gradient."""
    return _optimizer("ADAM", learning_rate, beta1=betas[0], beta2=betas[1], epsilon=epsilon,
                      weight_decay=weight_decay)


def adamw(learning_rate: float, betas: tuple[float, float] = (0.9, 0.999), *,
          epsilon: float = 1e-8, weight_decay: float = 0.01) -> Optimizer:
    """Adam with decoupled weight decay."""
    return _optimizer("ADAMW", learning_rate, beta1=betas[0], beta2=betas[1], epsilon=epsilon,
                      weight_decay=weight_decay)


def lars(learning_rate: float, momentum: float = 0.9, *, trust_coefficient: float = 0.001,
         weight_decay: float = 0.0) -> Optimizer:
    """LARS: momentum with a rate per shard."""
    return _optimizer("LARS", learning_rate, momentum=momentum, weight_decay=weight_decay,
                      trust_coefficient=trust_coefficient)


def lamb(learning_rate: float, betas: tuple[float, float] = (0.9, 0.999), *,
         epsilon: float = 1e-8, weight_decay: float = 0.01) -> Optimizer:
    """LAMB: AdamW with a rate per shard."""
    return _optimizer("LAMB", learning_rate, beta1=betas[0], beta2=betas[1], epsilon=epsilon,
                      weight_decay=weight_decay)


def rowwise_adagrad(learning_rate: float, *, epsilon: float = 1e-10) -> Optimizer:
    """Adagrad of a sparse table with one state for each row, the mean of its squares."""
    return _optimizer("ROWWISE_ADAGRAD", learning_rate, epsilon=epsilon)


def ftrl(learning_rate: float, beta: float = 1.0, *, l1: float = 0.0,
         l2: float = 0.0) -> Optimizer:
    """FTRL-proximal of a sparse table (McMahan et al. 2013); l1 makes values that are 0."""
    return _optimizer("FTRL", learning_rate, ftrl_beta=beta, l1=l1, l2=l2)


def vectors(count: int, learning_rate: float = 1.0) -> Optimizer:
    """None: the table has 1 to 64 vectors besides its values, with which servers compute
    (Client.create_vectors). A push adds the learning rate times the mean gradient to vector 1."""
    return Optimizer("VECTORS", float(learning_rate), (("vectors", int(count)),))


def uniform(low: float, high: float, seed: int = 1) -> dict[str, Any]:
    """First values: uniform in [low, high)."""
    return {"kind": "UNIFORM", "a": low, "b": high, "seed": seed}


def normal(mean: float, deviation: float, seed: int = 1) -> dict[str, Any]:
    """First values: normal."""
    return {"kind": "NORMAL", "a": mean, "b": deviation, "seed": seed}


def norm_gate(factor: float, *, quarantine_after: int = 0) -> dict[str, Any]:
    """A push is received, but not applied, when the norm of its mean gradient on a shard is above
    `factor` times the usual one, the median over those that push. After `quarantine_after` such
    pushes in a row nothing of their producer is applied, until "covey quarantine NAME --release";
    0 = never."""
    return {"factor": float(factor), "quarantine_after": int(quarantine_after)}


def constant() -> dict[str, Any]:
    """Schedule: the same rate always."""
    return {}


def step_decay(samples: int, factor: float, *, warmup: int = 0) -> dict[str, Any]:
    """Schedule: the rate is multiplied by `factor` each `samples` training examples."""
    return {"decay": "STEP", "decay_samples": samples, "decay_factor": factor,
            "warmup_samples": warmup}


def linear(samples: int, factor: float = 0.0, *, warmup: int = 0) -> dict[str, Any]:
    """Schedule: a straight line to `factor` times the rate at `samples` training examples."""
    return {"decay": "LINEAR", "decay_samples": samples, "decay_factor": factor,
            "warmup_samples": warmup}


def cosine(samples: int, factor: float = 0.0, *, warmup: int = 0) -> dict[str, Any]:
    """Schedule: half a cosine to `factor` times the rate at `samples` training examples."""
    return {"decay": "COSINE", "decay_samples": samples, "decay_factor": factor,
            "warmup_samples": warmup}


_WIRE = {"float32": "WIRE_FLOAT32", "float16": "WIRE_FLOAT16", "bfloat16": "WIRE_BFLOAT16",
         "int8": "WIRE_INT8_BLOCK", "scaled-float16": "WIRE_FLOAT16_BLOCK",
         "float8": "WIRE_FLOAT8_BLOCK", "topk": "WIRE_TOP_BLOCK"}
_COUNT_OF = {"ssp": "staleness", "buffered": "buffer", "local": "local_steps"}
_OPTION = {"quorum": "quorum", "grace": "grace_ms", "overlap": "overlap_steps",
           "cut": "staleness_cut"}


def _contract(text: str) -> dict[str, Any]:
    """"bsp", "ssp:2", "async", "buffered:4,cut=8", "local:16,quorum=2,grace=500ms,overlap=4"."""
    kind, _, rest = text.partition(":")
    fields: dict[str, Any] = {"kind": kind.upper()}
    try:
        for part in filter(None, rest.split(",")):
            name, equals, value = part.partition("=")
            if not equals:
                fields[_COUNT_OF[kind]] = int(part)
            elif name == "grace":
                fields["grace_ms"] = int(value.removesuffix("ms"))
            else:
                fields[_OPTION[name]] = int(value)
    except (KeyError, ValueError):
        raise ValueError(f"contract is {text!r}; use bsp, ssp:N, async, buffered, buffered:K,cut=N "
                         "or local:H,quorum=N,grace=MSms,overlap=N") from None
    return fields


@dataclass(frozen=True)
class TableSpec:
    """The definition of a table. Equal definitions are the same table.

    Attributes:
        name: 1 to 256 letters, digits and "_./-".
        shape: extents, slowest first.
        optimizer: from sgd(), adam() and so on.
        contract: how groups relate: "bsp", "ssp:2", "async", "buffered" or "local:16".
        schedule: of the learning rate, in training examples: from constant(), step_decay(),
            linear() or cosine().
        inner_optimizer: for "local:H", what each worker applies at every step to values of its own;
            `optimizer` is then applied to the changes of all groups.
        initializer: first values: "zeros", a number, uniform(...), normal(...), or "given": a
            program gives them, with Client.initialize() or as the values of a Step.
        wire: how gradients travel: "float32", "float16", "bfloat16", "scaled-float16", "int8",
            "float8" or "topk". The last four have a scale for each 256 elements.
        replicas: servers that hold each shard; 0 = two where there are two servers.
        norm_gate: keeps out pushes that are far larger than usual: from norm_gate(). None = none
            is kept out.
        extra: further fields of TableSpec in proto/table.proto, by their names there.
        value_wire: how values travel to members of groups, and from member to member, in the
            formats of `wire` except "topk". Servers, and members with update="members", keep
            float32. With update="program" it is the mean gradient that travels so, as "bfloat16"
            or "scaled-float16". Not for "local:H".
    """

    name: str
    shape: tuple[int, ...]
    optimizer: Optimizer = field(default_factory=lambda: sgd(1.0))
    contract: str = "buffered"
    schedule: dict[str, Any] = field(default_factory=constant)
    inner_optimizer: Optimizer | None = None
    initializer: Any = "zeros"
    wire: str = "float32"
    replicas: int = 0
    norm_gate: dict[str, Any] | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    value_wire: str = "float32"

    def to_json(self) -> str:
        """As libcovey reads it."""
        fields = _common_fields(self)
        fields["value_format"] = _choice("value_wire", self.value_wire, _WIRE)
        fields["shape"] = [int(extent) for extent in self.shape] or [1]
        return json.dumps({**fields, **self.extra})


@dataclass(frozen=True)
class SparseTableSpec:
    """The definition of a sparse table: rows that are found by 64-bit keys.

    A row comes into being with the first push that has its key. Before that it reads as its first
    values, which are a function of the initializer, the key and the column.

    Attributes:
        name: 1 to 256 letters, digits and "_./-".
        width: elements of each row, 1 to 4096.
        optimizer: sgd(), adagrad(), rowwise_adagrad(), adam() or ftrl(), without weight decay. A
            row's path depends on its own gradients only; Adam counts the row's own updates. Under
            "local:H" it is applied to the mean of the groups' changes; sgd(1), the default, takes
            it as it is. With adagrad() or rowwise_adagrad() in the workers of G groups,
            sgd(G ** 0.5) is right where round_mean is "all". Not ftrl() then.
        contract: how groups relate: "bsp", "ssp:2", "async", "buffered" or, for
            Worker.local_rows, "local:16".
        schedule: as in TableSpec.
        inner_optimizer: for "local:H", what each worker applies at every step to rows of its own:
            sgd(), adagrad(), rowwise_adagrad() or adam().
        initializer: first values: "zeros", a number, uniform(...) or normal(...).
        wire: how gradients travel: "float32", "float16" or "bfloat16".
        dtype: how values are stored and travel to programs, which get them as float32: "float32",
            or in half of the memory "bfloat16" or "float16". Servers compute in float32 and round
            at random, so that small updates count. float16 is finer, and infinite beyond 65504.
        replicas: as in TableSpec.
        rows_max: rows that the table holds at most, about; 0 = as many as there is memory for.
        when_full: what becomes of new keys of a table that holds as many: "refuse" raises
            FailedPrecondition once all other rows of the push are updated; "skip" only counts them,
            in Result.rows_refused; "evict" makes room.
        evict_by: with "evict", which rows go first: "age", those that were not updated for the
            largest number of updates; "count", those with the fewest updates; "norm", the smallest.
        admit_after: the update that makes a key's row is the one that holds the key for this time,
            as far as updates count; the gradients of those before are lost.
        admit_probability: that an update counts as one that holds a new key.
        round_mean: for "local:H", over which groups the mean of a row's changes is: "all", as in a
            dense table, or "holders", those that have touched the row in the round. The latter is
            for rows that one group trains, as those of its own users: each moves all of its way.
        norm_gate: as in TableSpec.
        extra: as in TableSpec.
    """

    name: str
    width: int
    optimizer: Optimizer = field(default_factory=lambda: sgd(1.0))
    contract: str = "buffered"
    schedule: dict[str, Any] = field(default_factory=constant)
    inner_optimizer: Optimizer | None = None
    initializer: Any = "zeros"
    wire: str = "float32"
    dtype: str = "float32"
    replicas: int = 0
    rows_max: int = 0
    when_full: str = "refuse"
    evict_by: str = "age"
    admit_after: int = 1
    admit_probability: float = 1.0
    round_mean: str = "all"
    norm_gate: dict[str, Any] | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> str:
        """As libcovey reads it."""
        fields = _common_fields(self)
        fields["data_type"] = _choice("dtype", self.dtype, _DTYPE)
        fields["sparse"] = {
            "width": int(self.width),
            "rows_max": int(self.rows_max),
            "when_full": _choice("when_full", self.when_full, _WHEN_FULL),
            "evict_by": _choice("evict_by", self.evict_by, _EVICT_BY),
            "admit_after": int(self.admit_after),
            "admit_probability": float(self.admit_probability),
            "round_mean": _choice("round_mean", self.round_mean, _ROUND_MEAN),
        }
        return json.dumps({**fields, **self.extra})


_DTYPE = {"float32": "FLOAT32", "bfloat16": "BFLOAT16", "float16": "FLOAT16"}
_WHEN_FULL = {"refuse": "REFUSE", "skip": "SKIP", "evict": "EVICT"}
_ROUND_MEAN = {"all": "OF_ALL_PUSHES", "holders": "OF_HOLDERS"}
_EVICT_BY = {"age": "EVICT_BY_AGE", "count": "EVICT_BY_COUNT", "norm": "EVICT_BY_NORM"}


def _choice(name: str, value: str, known: dict[str, str]) -> str:
    if value not in known:
        raise ValueError(f"{name} is {value!r}; use one of {', '.join(known)}")
    return known[value]


def _common_fields(spec: TableSpec | SparseTableSpec) -> dict[str, Any]:
    initializer = spec.initializer
    if initializer == "zeros":
        initializer = {}
    elif initializer == "given":
        initializer = {"kind": "GIVEN"}
    elif isinstance(initializer, (int, float)):
        initializer = {"kind": "CONSTANT", "a": float(initializer)}
    fields = {
        "name": spec.name,
        "optimizer": spec.optimizer._fields(),
        "learning_rate": {"base": spec.optimizer.learning_rate, **spec.schedule},
        "contract": _contract(spec.contract),
        "initializer": initializer,
        "gradient_format": _choice("wire", spec.wire, _WIRE),
    }
    if spec.inner_optimizer is not None:
        fields["inner_optimizer"] = spec.inner_optimizer._fields()
        fields["inner_learning_rate"] = {"base": spec.inner_optimizer.learning_rate}
    if spec.norm_gate is not None:
        fields["norm_gate"] = spec.norm_gate
    if spec.replicas:
        fields["durability"] = "MEMORY" if spec.replicas == 1 else "REPLICATED"
        fields["replicas"] = spec.replicas
    return fields
