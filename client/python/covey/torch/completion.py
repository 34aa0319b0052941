# SPDX-License-Identifier: Apache-2.0
"""Futures of PyTorch for operations of Covey."""

from __future__ import annotations

import queue
import threading
from typing import Any, Callable, Protocol

import torch



class Waitable(Protocol):
    """An operation in progress."""

    def wait(self) -> Any:
        """Raises what the operation ended with."""


def new_future(tensors: Any) -> "torch.futures.Future[Any]":
    """A future of these tensors, in lists; a future knows the GPUs of what it will have."""
    return torch.futures.Future(devices=sorted(_gpus(tensors), key=str))


def _gpus(tensors: Any) -> set[torch.device]:
    if isinstance(tensors, torch.Tensor):
        return {tensors.device} if tensors.is_cuda else set()
    return set().union(*map(_gpus, tensors))


class Completer:
    """Completes futures when their operations end: one thread, in the order of the operations."""

    def __init__(self) -> None:
        self._pending: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def future(self, handle: Waitable, result: Callable[[], Any],
               tensors: Any) -> "torch.futures.Future[Any]":
        """A future of what `result` returns once the operation has ended: `tensors`, in lists."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="covey futures",
                                                daemon=True)
                self._thread.start()
        future = new_future(tensors)
        self._pending.put((handle, result, future))
        return future

    def _run(self) -> None:
        while True:
            handle, result, future = self._pending.get()
            try:
                handle.wait()
                future.set_result(result())
            except Exception as error:  # pylint: disable=broad-except
                future.set_exception(error)
