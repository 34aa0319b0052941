# SPDX-License-Identifier: Apache-2.0
"""A source file includes its own header first, which proves that the header compiles alone.

tools/bazel/headers.bzl checks only the headers that no such file proves.
"""

import re

from tests import report
from tests.style import tree

_DIRECTIVE = re.compile(r"^\s*#\s*(\w+)\s*(.*?)\s*$", re.MULTILINE)


def own_header_late(files):
    """Source files that include another header before the one of the same name."""
    found = []
    for path in files.paths(".cc"):
        header = path.removesuffix(".cc") + ".h"
        if header not in files:
            continue
        first = _DIRECTIVE.search(files.text(path))
        if first is None or first.groups() != ("include", f'"{header}"'):
            found.append(f'{path}: its first directive must be #include "{header}"')
    return found


class IncludesTest(tree.StyleTest):
    def test_the_project(self):
        self.assert_clean(own_header_late(tree.Tree.of_workspace()))

    def test_finds_a_header_that_is_not_first(self):
        files = tree.Tree(
            {
                "a/good.cc": '// Why.\n#include "a/good.h"\n\n#include <map>\n',
                "a/good.h": "",
                "a/late.cc": '#include <map>\n#include "a/late.h"\n',
                "a/late.h": "",
                "a/defines.cc": '#define X\n#include "a/defines.h"\n',
                "a/defines.h": "",
                "a/without.cc": "#include <map>\n",
                "a/never.cc": "",
                "a/never.h": "",
            }
        )
        self.assert_found(["defines.cc", "late.cc", "never.cc"], own_header_late(files))


if __name__ == "__main__":
    report.main()
