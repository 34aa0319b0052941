# SPDX-License-Identifier: Apache-2.0
"""Code is formatted as by clang-format; `tools/dev fmt` fixes what this finds."""

import concurrent.futures
import os
import re
import subprocess

from tests import report
from tests.style import tree

_CLANG_FORMAT = "clang-format-14"
_COLUMNS = 100
_COMPLAINT = re.compile(r"^(\S+):\d+:\d+: ")
_BATCH = 100


def unformatted(paths):
    """The first complaint of clang-format about each of `paths`.

    Passes hundreds of files to each process, because starting it takes longer than formatting a
    file.
    """
    batches = [paths[start:start + _BATCH] for start in range(0, len(paths), _BATCH)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [complaint for found in pool.map(_complaints, batches) for complaint in found]


def long_comments(files):
    """Comments beyond the width of code, which clang-format leaves as they are."""
    found = []
    for path in files.paths(".h", ".cc", ".cu", ".proto"):
        for number, line in files.lines(path):
            if len(line) > _COLUMNS and "//" in line:
                found.append(f"{path}:{number}: {len(line)} columns; wrap the comment at {_COLUMNS}")
    return found


def _complaints(paths):
    run = subprocess.run(
        [_CLANG_FORMAT, "--dry-run", "--Werror", "--style=file", *paths],
        capture_output=True,
        cwd=tree.workspace_root(),
        text=True,
    )
    first = {}
    for line in run.stderr.splitlines():
        if match := _COMPLAINT.match(line):
            first.setdefault(match.group(1), f"{line}; run tools/dev fmt")
    if run.returncode != 0 and not first:
        return [f"{_CLANG_FORMAT}: {run.stderr}"]
    return list(first.values())


class FormatTest(tree.StyleTest):
    def test_the_project(self):
        files = tree.Tree.of_workspace()
        self.assert_clean(unformatted(files.paths(".h", ".cc", ".cu")) + long_comments(files))

    def test_finds_a_long_comment(self):
        files = tree.Tree({"a.h": "// " + 98 * "x" + "\n// " + 97 * "é" + "\n"})
        self.assert_found(["a.h:1: 101 columns"], long_comments(files))

    def test_finds_what_is_not_formatted(self):
        folder = os.environ["TEST_TMPDIR"]
        with open(os.path.join(tree.workspace_root(), ".clang-format")) as style:
            with open(os.path.join(folder, ".clang-format"), "w") as copy:
                copy.write(style.read())
        good, bad = os.path.join(folder, "good.cc"), os.path.join(folder, "bad.cc")
        with open(good, "w") as file:
            file.write("int* pointer;\n")
        with open(bad, "w") as file:
            file.write("int *pointer  ;\n")
        self.assert_found(["bad.cc:1"], unformatted([good, bad]))


if __name__ == "__main__":
    report.main()
