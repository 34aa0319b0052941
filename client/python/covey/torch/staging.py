# SPDX-License-Identifier: Apache-2.0
"""Tensors on GPUs, or of 16-bit types, beside the float32 host memory in which Covey carries them."""

from __future__ import annotations

from typing import Any, Callable, Iterable

import torch

TYPES = (torch.float32, torch.float16, torch.bfloat16)


def host_copy(tensor: torch.Tensor) -> torch.Tensor:
    """A copy in host memory, as float32; page-locked for tensors on a GPU, which copies faster."""
    host = torch.empty(tensor.shape, dtype=torch.float32, device="cpu", pin_memory=tensor.is_cuda)
    return host.copy_(tensor.detach())


class Staging:
    """Takes gradients from where they are to host memory, and values back.

    A GPU copies a gradient while it computes the next one: the copy runs on a stream of its own.
    Gradients of float32 on the CPU are submitted in place.
    """

    def __init__(self, submit: Callable[[int, torch.Tensor], None]) -> None:
        """
        Args:
            submit: gets each gradient's number and its float32 elements in host memory.
        """
        self._submit = submit
        self._streams: dict[torch.device, Any] = {}
        self._under_way: list[tuple[int, torch.Tensor, Any]] = []
        self._landing: list[Any] = []

    def send(self, number: int, gradient: torch.Tensor) -> None:
        """Submits the gradient once it is in host memory: at once, in a later send(), or in flush()."""
        gradient = gradient.detach()
        if gradient.is_cuda:
            self._under_way.append((number, *self._start_copy(gradient)))
        else:
            self._submit(number, gradient.to("cpu", torch.float32).contiguous())
        self._submit_copied(waits=False)

    def flush(self) -> None:
        """Waits until all gradients are in host memory, and submits them."""
        self._submit_copied(waits=True)

    def land(self, values: Iterable[tuple[torch.Tensor, torch.Tensor]]) -> None:
        """Copies new values into tensors: pairs of a tensor and of what host_copy() has made of it.

        Work that is given to a GPU afterwards sees them. Before the values may be overwritten, call
        settle().
        """
        devices = set()
        with torch.no_grad():
            for tensor, host in values:
                # Other devices than GPUs give no event to wait for.
                tensor.copy_(host, non_blocking=tensor.is_cuda)
                if tensor.is_cuda:
                    devices.add(tensor.device)
        self._landing = [torch.cuda.current_stream(device).record_event() for device in devices]

    def settle(self) -> None:
        """Waits until the copies of land() have ended."""
        for copied in self._landing:
            copied.synchronize()
        self._landing = []

    def _start_copy(self, gradient: torch.Tensor) -> tuple[torch.Tensor, Any]:
        """The gradient's copy in host memory, and the event after which it is complete."""
        device = gradient.device
        if device not in self._streams:
            self._streams[device] = torch.cuda.Stream(device)
        stream = self._streams[device]
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            host = torch.empty(gradient.shape, dtype=torch.float32, device="cpu", pin_memory=True)
            host.copy_(gradient, non_blocking=True)
            copied = stream.record_event()
        gradient.record_stream(stream)  # Its memory is not given to others before the copy ends.
        return host, copied

    def _submit_copied(self, waits: bool) -> None:
        while self._under_way:
            number, host, copied = self._under_way[0]
            if waits:
                copied.synchronize()
            elif not copied.query():
                return
            del self._under_way[0]
            self._submit(number, host)
