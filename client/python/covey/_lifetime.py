# SPDX-License-Identifier: Apache-2.0
"""Leaves the cluster at the end of the program, before Python takes its modules apart."""

from __future__ import annotations

import atexit
import weakref
from typing import Any

_open: "weakref.WeakSet[Any]" = weakref.WeakSet()


def remember(closable: Any) -> None:
    """Calls closable.close() at exit, if it still exists."""
    _open.add(closable)


@atexit.register
def close_all() -> None:
    """Closes what was remembered. May be called before the end; closing twice does nothing."""
    for closable in list(_open):
        closable.close()


def settings(**given: Any) -> list[str]:
    """The "name=value" texts of the arguments that are not None."""
    texts = []
    for name, value in given.items():
        if value is None:
            continue
        if isinstance(value, bool):
            value = str(value).lower()
        elif isinstance(value, (float, int)) and name.endswith(("deadline", "spin")):
            value = f"{round(float(value) * 1e6)}us"
        texts.append(f"{name.replace('_', '-')}={value}")
    return texts
