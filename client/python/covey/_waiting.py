# SPDX-License-Identifier: Apache-2.0
"""Calls that block in the library without slices, made so that Ctrl-C ends the wait."""

from __future__ import annotations

import threading
from typing import Any, Callable

_SLICE_SECONDS = 0.05


def interruptible(call: Callable[..., Any], *arguments: Any) -> Any:
    """Returns what the call returns, or raises what it raises.

    In the main thread, which gets signals, the call runs in a thread of its own. When the wait is
    interrupted, that thread goes on until the call's own deadline, and its result is dropped.
    """
    if threading.current_thread() is not threading.main_thread():
        return call(*arguments)
    ended: list[tuple[bool, Any]] = []

    def run() -> None:
        try:
            ended.append((True, call(*arguments)))
        except BaseException as error:  # pylint: disable=broad-except
            ended.append((False, error))

    thread = threading.Thread(target=run, name="covey wait", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(_SLICE_SECONDS)
    succeeded, outcome = ended[0]
    if succeeded:
        return outcome
    raise outcome
