# SPDX-License-Identifier: Apache-2.0
"""When a parameter's gradient is final, in every version of PyTorch."""

from __future__ import annotations

from typing import Any, Callable

import torch


def on_accumulated(parameter: torch.nn.Parameter, call: Callable[[], None]) -> list[Any]:
    """Calls `call` each time that backward has added to parameter.grad.

    Returns what must be kept alive for that; dropping it does not always end the calls.
    """
    if hasattr(parameter, "register_post_accumulate_grad_hook"):
        return [parameter.register_post_accumulate_grad_hook(lambda _: call())]
    # Before PyTorch 2.1: a hook on the node that accumulates, which lives as long as we hold it.
    node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
    return [node, node.register_hook(lambda *_: call())]


def watched(leaf: torch.Tensor, call: Callable[[torch.Tensor], None]) -> torch.Tensor:
    """The same values for a graph to use: `call` gets the leaf each time that backward has added to
    leaf.grad through it. The graph keeps the leaf, and nothing else does."""
    if hasattr(leaf, "register_post_accumulate_grad_hook"):
        leaf.register_post_accumulate_grad_hook(call)
        return leaf
    alias = leaf.view_as(leaf)
    alias.grad_fn.next_functions[0][0].register_hook(lambda *_: call(leaf))
    return alias


def spent(parameter: torch.nn.Parameter) -> torch.Tensor:
    """Stands for a gradient that has left: it shows NaN when read, and raises when written."""
    return torch.full((), float("nan"), dtype=parameter.dtype,
                      device=parameter.device).expand(parameter.shape)
