# SPDX-License-Identifier: Apache-2.0
"""clang-tidy has no findings in the files of a change.

It takes half a minute per file, so only files that differ from the main branch are checked, and
only while there are few; `tools/dev tidy` checks all.
"""

import os
import pathlib
import unittest

from tests import report
from tests.style import tree
from tools import tidy

_FILES_MAX = 6


def _generated():
    """The folder of the generated headers: above the runfiles of this test."""
    return str(pathlib.Path(os.environ["RUNFILES_DIR"]).parents[2])


@unittest.skipIf(tidy.missing(), tidy.missing())
class TidyTest(tree.StyleTest):
    def test_what_has_changed(self):
        root = tree.workspace_root()
        sources = tidy.changed_sources(root)
        if sources is None:
            self.skipTest("no main branch of a git checkout to compare with")
        if len(sources) > _FILES_MAX:
            self.skipTest(f"{len(sources)} files have changed, more than {_FILES_MAX}; "
                          "run: tools/dev tidy --changed")
        self.assert_clean(tidy.complaints(root, sources, _generated()))

    def test_finds_a_misnamed_variable(self):
        folder = pathlib.Path(os.environ["TEST_TMPDIR"])
        rules = pathlib.Path(tree.workspace_root(), ".clang-tidy").read_text(encoding="utf-8")
        (folder / ".clang-tidy").write_text(rules, encoding="utf-8")
        (folder / "bad.cc").write_text("int Main() {\n  int BadName = 0;\n  return BadName;\n}\n",
                                       encoding="utf-8")
        (folder / "good.cc").write_text("int Main() { return 0; }\n", encoding="utf-8")
        found = tidy.complaints(str(folder), ["bad.cc", "good.cc"], ".")
        self.assert_found(["BadName"], found)


if __name__ == "__main__":
    report.main()
