# SPDX-License-Identifier: Apache-2.0
"""The version is defined in one place, and the changelog begins with it."""

import re

from tests import report
from tests.style import tree

_PLACE = "common/base/version.h"
_CHANGELOG = "docs/CHANGELOG.md"
_VERSION = re.compile(r'kVersion\[\] = "(\d+\.\d+\.\d+)"')
_HEADING = re.compile(r"^## (\S+)", re.MULTILINE)


def disagreements(files):
    """The changelog's newest version is the one that programs report, and no other file repeats it.
    """
    found = []
    version = _VERSION.search(files.text(_PLACE)).group(1)
    heading = _HEADING.search(files.text(_CHANGELOG))
    if heading is None or heading.group(1) != version:
        found.append(
            f"{_CHANGELOG}: the first heading is not that of {version}; "
            f"begin it with `## {version}`, or change {_PLACE}"
        )
    for path in files.paths(".h", ".cc", "BUILD", ".bzl"):
        if path != _PLACE and f'"{version}"' in files.text(path):
            found.append(f"{path}: repeats the version; include {_PLACE}")
    return found


class VersionTest(tree.StyleTest):
    def test_the_project(self):
        self.assert_clean(disagreements(tree.Tree.of_workspace()))

    def test_finds_a_changelog_without_the_version(self):
        place = 'inline constexpr char kVersion[] = "1.2.3";\n'
        for text, expected in (
            ("## 1.2.3 (unreleased)\n## 1.2.2\n", []),
            ("## 1.2.2\n## 1.2.1\n", [_CHANGELOG]),
            ("nothing\n", [_CHANGELOG]),
        ):
            files = tree.Tree({_PLACE: place, _CHANGELOG: text})
            self.assert_found(expected, disagreements(files))

    def test_finds_a_second_place(self):
        files = tree.Tree(
            {
                _PLACE: 'inline constexpr char kVersion[] = "1.2.3";\n',
                _CHANGELOG: "## 1.2.3\n",
                "a/main.cc": 'Print("1.2.3");\n',
            }
        )
        self.assert_found(["a/main.cc"], disagreements(files))


if __name__ == "__main__":
    report.main()
