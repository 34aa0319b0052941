# SPDX-License-Identifier: Apache-2.0
"""Waiting for operations in asyncio: one descriptor per event loop, and no polling."""

from __future__ import annotations

import asyncio
import contextlib
import os
import weakref
from typing import Any

import covey._native as _native


class _Waits:
    """The operations for which the coroutines of one event loop wait."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._notifier = _native.notifier_new()
        self._operations: dict[asyncio.Future[None], Any] = {}
        loop.add_reader(_native.notifier_descriptor(self._notifier), self._wake)

    async def until_done(self, operation: Any) -> None:
        ended = asyncio.get_running_loop().create_future()
        self._operations[ended] = operation
        try:
            _native.notifier_add(self._notifier, operation)
            await ended
        finally:  # also when the coroutine is cancelled
            del self._operations[ended]

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(_native.notifier_descriptor(self._notifier), 8)
        for ended, operation in self._operations.items():
            if not ended.done() and _native.handle_done(operation):
                ended.set_result(None)


_of_loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Waits] = (
    weakref.WeakKeyDictionary())


async def until_done(operation: Any) -> None:
    """Returns when the operation has ended."""
    loop = asyncio.get_running_loop()
    waits = _of_loops.get(loop)
    if waits is None:
        waits = _of_loops[loop] = _Waits(loop)
    await waits.until_done(operation)
