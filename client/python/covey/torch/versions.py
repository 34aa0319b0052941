# SPDX-License-Identifier: Apache-2.0
"""Which versions of PyTorch covey.torch runs on."""

from __future__ import annotations

import re

_OLDEST = (1, 13)


def check(version: str) -> None:
    """ImportError: this version of PyTorch is too old."""
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers is not None and tuple(int(number) for number in numbers.groups()) < _OLDEST:
        raise ImportError(f"covey.torch needs PyTorch {_OLDEST[0]}.{_OLDEST[1]} or later, and this is "
                          f"{version}; install a newer one, or use covey.Step without covey.torch")
