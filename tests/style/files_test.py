# SPDX-License-Identifier: Apache-2.0
"""Every file is built by some target, has a name that says what it holds, and is included once."""

import fnmatch
import posixpath
import re

from tests import report
from tests.style import tree

_OWNED = (".h", ".cc", ".cu", ".proto", ".py", ".bzl")
_VAGUE_ANYWHERE = {"util", "utils", "helper", "helpers", "misc", "manager", "handler"}
_VAGUE_ALONE = {"data", "info", "common", "stuff"}
# In addition to files and folders whose names begin with a dot.
_TOP_LEVEL = set(
    "BUILD README.md WORKSPACE client common deploy docs proto scheduler server tests tools worker"
    .split())


def dead_files(files):
    """Files that no BUILD file names, so that they are neither built nor tested."""
    found = []
    for path in files.paths(*_OWNED):
        folder = posixpath.dirname(path)
        while folder and posixpath.join(folder, "BUILD") not in files:
            folder = posixpath.dirname(folder)
        build = posixpath.join(folder, "BUILD")
        inside = posixpath.relpath(path, folder or ".")
        if build not in files or not _names(files.text(build), inside):
            found.append(f"{path}: no BUILD file names it; name it in {build} or remove it")
    return found


def _names(build, path):
    """Whether a string in `build` is `path` or a glob pattern of it.

    Targets made in a loop are named without the suffix: "banned_test" means banned_test.py.
    """
    stem = posixpath.splitext(path)[0]
    strings = re.findall(r'"([^"\n]+)"', build)
    return any(fnmatch.fnmatchcase(path, text) or text == stem for text in strings)


def vague_names(files):
    found = []
    for path in files.paths(*_OWNED):
        stem = posixpath.basename(path).split(".")[0]
        words = set(stem.removesuffix("_test").split("_"))
        if words & _VAGUE_ANYWHERE or stem in _VAGUE_ALONE:
            found.append(f"{path}: the name says nothing; name the one thing that the file holds")
    return found


def stray_top_level(files):
    found = {path.split("/")[0] for path in files.paths()} - _TOP_LEVEL
    return [f"{name}: the top level has room for nothing more; put it into a folder"
            for name in sorted(found) if not name.startswith(".")]


# What programs in C include: it has a guard of the old kind, and the headers of C.
_C_HEADERS = ("client/c/covey.h",)


def unguarded_headers(files):
    return [
        f"{path}: begin with #pragma once"
        for path in files.paths(".h")
        if path not in _C_HEADERS and "#pragma once" not in files.text(path)
    ]


class FilesTest(tree.StyleTest):
    def test_the_project(self):
        files = tree.Tree.of_workspace()
        self.assert_clean(dead_files(files) + vague_names(files) + unguarded_headers(files)
                          + stray_top_level(files))

    def test_finds_a_dead_file(self):
        files = tree.Tree(
            {
                "a/BUILD": 'srcs = ["used.cc", "sub/used.cc"] + glob(["*.proto"])\n',
                "a/dead.cc": "",
                "a/used.cc": "",
                "a/used.proto": "",
                "a/sub/used.cc": "",
                "a/sub/dead.cc": "",
                "b/dead.cc": "",
            }
        )
        self.assert_found(["a/dead.cc", "a/sub/dead.cc", "b/dead.cc"], dead_files(files))

    def test_finds_a_vague_name(self):
        files = tree.Tree({"a/string_util.h": "", "a/info.cc": "", "a/barrier.h": ""})
        self.assert_found(["info.cc", "string_util.h"], vague_names(files))

    def test_finds_what_does_not_belong_at_the_top(self):
        files = tree.Tree({"LICENSE": "", ".bazelrc": "", "docs/LICENSE": "", "x/y/z": "", "BUILD": ""})
        self.assert_found(["LICENSE", "x"], stray_top_level(files))

    def test_finds_an_unguarded_header(self):
        files = tree.Tree({"a.h": "#pragma once\n", "b.h": ""})
        self.assert_found(["b.h"], unguarded_headers(files))


if __name__ == "__main__":
    report.main()
