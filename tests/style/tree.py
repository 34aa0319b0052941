# SPDX-License-Identifier: Apache-2.0
"""The project's files as text, the input of every style test.

A check is a function from a Tree to a list of violations, each `path[:line]: the problem; the
remedy`. So a test can pass a Tree of its own with a planted violation.
"""

import os
import pathlib
import re
import unittest

_SKIPPED_FOLDERS = {".git", "__pycache__"}
# A file in a worktree of git, and the outputs of tools/dev compdb and deploy/quickstart.
_SKIPPED_FILES = {".git", ".clangd", "compile_commands.json", "covey-report.html"}


class Tree:
    """Immutable: the text of each file, by its path from the workspace root."""

    def __init__(self, files):
        self._files = dict(sorted(files.items()))

    @classmethod
    def of_workspace(cls):
        root = workspace_root()
        files = {}
        for folder, subfolders, names in os.walk(root):
            subfolders[:] = [
                name
                for name in subfolders
                if name not in _SKIPPED_FOLDERS and not os.path.islink(os.path.join(folder, name))
            ]
            for name in sorted(set(names) - _SKIPPED_FILES):
                path = os.path.join(folder, name)
                try:
                    text = pathlib.Path(path).read_text(encoding="utf-8")
                except UnicodeDecodeError:
                    continue  # an image or another file without lines
                files[os.path.relpath(path, root)] = text
        return cls(files)

    def paths(self, *suffixes):
        """Paths that end in one of `suffixes`; all of them without any."""
        return [path for path in self._files if not suffixes or path.endswith(suffixes)]

    def text(self, path):
        return self._files[path]

    def lines(self, path):
        """(number from 1, line) pairs."""
        return list(enumerate(self._files[path].splitlines(), start=1))

    def __contains__(self, path):
        return path in self._files


def workspace_root():
    """Bazel links each test file to its place in the workspace; follows the link."""
    root = pathlib.Path(__file__).resolve().parents[2]
    if not (root / "WORKSPACE").exists():
        raise RuntimeError(f"{root} is not the workspace: a style test must be tagged local")
    return str(root)


def code_only(text):
    """C++ `text` with comments and literals blanked out; line numbers stay."""
    pattern = r'//[^\n]*|/\*.*?\*/|R"\(.*?\)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\''
    return re.sub(
        pattern,
        lambda match: '""' + "\n" * match.group().count("\n"),
        text,
        flags=re.DOTALL,
    )


class StyleTest(unittest.TestCase):
    """Base of the style tests."""

    def assert_clean(self, violations):
        if violations:
            self.fail(f"{len(violations)} found\n" + "\n".join(violations))

    def assert_found(self, expected, violations):
        """Each violation, and no other line, contains the string at its place in `expected`."""
        self.assertEqual(len(expected), len(violations), violations)
        for part, violation in zip(expected, violations):
            self.assertIn(part, violation)
