# SPDX-License-Identifier: Apache-2.0
"""Every source file names its license by an SPDX line; `tools/dev fmt` adds what is missing."""

from tests import report
from tests.style import tree
from tools import license as spdx


def unlicensed(files):
    return [
        f"{path}: no line `{spdx.LINE}` at its beginning; run tools/dev fmt"
        for path in files.paths()
        if spdx.is_missing(path, files.text(path))
    ]


class LicenseTest(tree.StyleTest):
    def test_the_project(self):
        self.assert_clean(unlicensed(tree.Tree.of_workspace()))

    def test_finds_a_file_without_the_line_and_mends_it(self):
        bare = {
            "a.cc": "// Why.\n",
            "a.h": "#pragma once\n",
            "a.proto": 'syntax = "proto3";\n',
            "a/BUILD": "# What it is.\n# Open this first.\n\ncc_library()\n",
            "a/run": "#!/usr/bin/env bash\nexit\n",
            "b.py": '"""Why."""\n',
        }
        self.assert_found(sorted(bare), unlicensed(tree.Tree(bare)))
        mended = {path: spdx.added(path, text) for path, text in bare.items()}
        self.assertEqual([], unlicensed(tree.Tree(mended)))
        self.assertEqual("// SPDX-License-Identifier: Apache-2.0\n\n// Why.\n", mended["a.cc"])
        self.assertTrue(mended["a/run"].startswith("#!/usr/bin/env bash\n# SPDX"))
        self.assertTrue(mended["a/BUILD"].startswith("# What it is.\n# Open this first.\n# SPDX"))

    def test_leaves_other_files_alone(self):
        self.assertEqual([], unlicensed(tree.Tree({"a.md": "# Title\n", "a.txt": "text\n"})))


if __name__ == "__main__":
    report.main()
