# SPDX-License-Identifier: Apache-2.0
"""Every installed library of Debian is used."""

import re

from tests import report
from tests.style import tree

_SYSTEM = "tools/bazel/system.BUILD"
_TARGET = re.compile(r'^    name = "(\w+)"', re.MULTILINE)


def unused_libraries(files):
    found = []
    for name in _TARGET.findall(files.text(_SYSTEM)):
        used = f'":{name}"' in files.text(_SYSTEM) or any(
            f'"@system//:{name}"' in files.text(path) for path in files.paths("BUILD", ".bzl"))
        if not used:
            found.append(f"{_SYSTEM}: no target uses {name}; remove it, and its package from "
                         "deploy/install-packages")
    return found


class DependenciesTest(tree.StyleTest):
    def test_the_project(self):
        self.assert_clean(unused_libraries(tree.Tree.of_workspace()))

    def test_finds_an_unused_library(self):
        target = 'cc_library(\n    name = "{}",\n    deps = [{}],\n)\n'
        files = tree.Tree(
            {
                _SYSTEM: target.format("used", '":needed"') + target.format("needed", "")
                + target.format("idle", ""),
                "a/BUILD": 'deps = ["@system//:used"]\n',
            }
        )
        self.assert_found(["no target uses idle"], unused_libraries(files))


if __name__ == "__main__":
    report.main()
