# SPDX-License-Identifier: Apache-2.0
"""Optimizers of PyTorch in Covey's words. The formulas are the same (common/optimizer)."""

from __future__ import annotations

from typing import Any

import torch

import covey.definitions as definitions


def _refuse(kind: str, option: str, value: Any) -> None:
    raise ValueError(
        f"{kind}({option}={value}) has no counterpart on the servers; leave {option} at its default")


def _sgd(group: dict[str, Any]) -> definitions.Optimizer:
    if group["momentum"] == 0:
        return definitions.sgd(group["lr"], weight_decay=group["weight_decay"])
    if group["dampening"] != 0:
        _refuse("SGD", "dampening", group["dampening"])
    make = definitions.nesterov if group["nesterov"] else definitions.momentum
    return make(group["lr"], group["momentum"], weight_decay=group["weight_decay"])


def _adagrad(group: dict[str, Any]) -> definitions.Optimizer:
    for option in ("lr_decay", "initial_accumulator_value"):
        if group.get(option, 0) != 0:
            _refuse("Adagrad", option, group[option])
    return definitions.adagrad(group["lr"], epsilon=group["eps"],
                               weight_decay=group["weight_decay"])


def _adam(group: dict[str, Any]) -> definitions.Optimizer:
    if group.get("amsgrad"):
        _refuse("Adam", "amsgrad", True)
    if group.get("decoupled_weight_decay"):  # since PyTorch 2.6
        return _adamw(group)
    return definitions.adam(group["lr"], group["betas"], epsilon=group["eps"],
                            weight_decay=group["weight_decay"])


def _adamw(group: dict[str, Any]) -> definitions.Optimizer:
    if group.get("amsgrad"):
        _refuse("AdamW", "amsgrad", True)
    return definitions.adamw(group["lr"], group["betas"], epsilon=group["eps"],
                             weight_decay=group["weight_decay"])


_KNOWN = {torch.optim.SGD: _sgd, torch.optim.Adagrad: _adagrad, torch.optim.Adam: _adam,
          torch.optim.AdamW: _adamw}


# What PyTorch calls the arrays that an optimizer keeps, in the order of the servers' slots.
_SLOTS: dict[type, tuple[str, ...]] = {
    torch.optim.SGD: ("momentum_buffer",), torch.optim.Adagrad: ("sum",),
    torch.optim.Adam: ("exp_avg", "exp_avg_sq"), torch.optim.AdamW: ("exp_avg", "exp_avg_sq")}


def state_of(kind: type, slots: list[torch.Tensor], updates: int) -> dict[str, Any]:
    """A parameter's entry in the state of PyTorch's optimizer of this kind."""
    state: dict[str, Any] = dict(zip(_SLOTS[kind], slots))
    if kind is not torch.optim.SGD:
        state["step"] = torch.tensor(float(updates))
    return state


def slot_names(kind: type, group: dict[str, Any]) -> tuple[str, ...]:
    """What PyTorch calls the slots that this optimizer keeps with these options."""
    return () if kind is torch.optim.SGD and group["momentum"] == 0 else _SLOTS[kind]


def slots_in(kind: type, group: dict[str, Any], state: dict[str, Any],
             parameter: torch.Tensor, name: str) -> tuple[list[torch.Tensor], int]:
    """The servers' slots of a parameter, and its updates, by its entry in a state of PyTorch.

    The slots are float32. Raises ValueError: it is the entry of another optimizer, or of another
    parameter, or the servers do not take it.
    """
    names = slot_names(kind, group)
    expected = set(names) if kind is torch.optim.SGD else {*names, "step"}
    found = {key for key, value in state.items() if value is not None}
    if found != expected:
        raise ValueError(f"the state of {name} has {_listed(found)}; {kind.__name__} with these "
                         f"options keeps {_listed(expected)}; load the state of an equal optimizer")
    slots = []
    for slot in names:
        tensor = state[slot]
        if tensor.shape != parameter.shape:
            raise ValueError(f"{slot} of {name} has shape {tuple(tensor.shape)}, and the parameter "
                             f"has {tuple(parameter.shape)}; load the state of the same model")
        slots.append(tensor.to("cpu", torch.float32))
        check_finite(slots[-1], f"{slot} of {name}")
    if kind is torch.optim.SGD:  # which does not count its steps, and has no use for the number
        return slots, 1
    return slots, count_in(state["step"], f"step of {name}")


def check_finite(tensor: torch.Tensor, what: str) -> None:
    """Raises ValueError where the servers would refuse the tensor."""
    if not bool(torch.isfinite(tensor).all()):
        raise ValueError(f"{what} has elements that are infinite or not a number; load a state from "
                         "before")


def count_in(value: Any, what: str) -> int:
    """A count in a state. Raises ValueError: it is none that the servers take."""
    if not (float(value).is_integer() and 0 <= int(value) <= 2**61):
        raise ValueError(f"{what} is {float(value):g}; it has to be a whole number from 0 to 2**61, "
                         "as state_dict() returns it")
    return int(value)


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"


def translate(optimizer: torch.optim.Optimizer, group: dict[str, Any]) -> definitions.Optimizer:
    """The optimizer of one parameter group.

    Raises ValueError: the optimizer, or an option of it, is unknown to the servers.
    """
    kind = type(optimizer)
    if kind not in _KNOWN:
        known = ", ".join(known.__name__ for known in _KNOWN)
        raise ValueError(f"{kind.__name__} does not run on the servers; use one of {known}, or "
                         "update='program' under contract 'bsp', which takes every optimizer")
    if group.get("maximize"):
        _refuse(kind.__name__, "maximize", True)
    return _KNOWN[kind](group)
