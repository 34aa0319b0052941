# SPDX-License-Identifier: Apache-2.0
"""Adds the SPDX line of the license to every file that has none, as tests/style/license_test.py requires.

  tools/dev fmt    runs it, with the rest of the formatting
"""

import pathlib
import subprocess

LINE = "SPDX-License-Identifier: Apache-2.0"
_SLASHES = (".h", ".cc", ".cu", ".proto")
_HASHES = (".py", ".bzl", ".sh", "BUILD", "WORKSPACE")
# Lines that must stay first: an interpreter, and the description of the folder in a BUILD file.
_BUILD_HEAD = 2


def _mark(path, text):
    """How a comment begins in this file; None where no license line is required."""
    if path.endswith(_SLASHES):
        return "//"
    if path.endswith(_HASHES) or text.startswith("#!"):
        return "#"
    return None


def is_missing(path, text):
    return _mark(path, text) is not None and LINE not in "\n".join(text.splitlines()[:4])


def added(path, text):
    """`text` with the line at its place."""
    lines = text.splitlines(keepends=True)
    head = 0
    if text.startswith("#!"):
        head = 1
    elif pathlib.PurePath(path).name == "BUILD":
        head = _BUILD_HEAD
    mark = _mark(path, text)
    # A comment that follows is about the file, and begins a paragraph of its own.
    gap = ["\n"] if mark == "//" and text.startswith(mark) else []
    return "".join([*lines[:head], f"{mark} {LINE}\n", *gap, *lines[head:]])


def main():
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        capture_output=True, text=True, check=True)
    for path in map(pathlib.Path, listed.stdout.splitlines()):
        if not path.is_file():
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if is_missing(str(path), text):
            path.write_text(added(str(path), text), encoding="utf-8")


if __name__ == "__main__":
    main()
