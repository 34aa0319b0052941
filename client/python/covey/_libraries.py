# SPDX-License-Identifier: Apache-2.0
"""Which libraries of the system the package needs."""

import pathlib


def missing(error: ImportError) -> str:
    """What to tell a user whose system cannot load covey._native, which has raised `error`.

    A wheel has a file with the names of Debian's packages; other installations do without.
    """
    needed = pathlib.Path(__file__).with_name("debian-packages.txt")
    if not needed.exists():
        return f"covey: {error}"
    return (f"covey: {error}. This wheel is for Debian 12 with these packages: "
            f"apt-get install {needed.read_text(encoding='utf-8').strip()}")
