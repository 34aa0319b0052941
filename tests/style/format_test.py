"""Code looks the way clang-format writes it; `tools/dev fmt` mends what this finds."""

import concurrent.futures
import os
import subprocess
import unittest

from tests import report
from tests.style import tree

_CLANG_FORMAT = "clang-format-14"


def unformatted(paths):
    """The first complaint of clang-format about each of `paths`."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [complaint for complaint in pool.map(_complaint, paths) if complaint]


def _complaint(path):
    run = subprocess.run(
        [_CLANG_FORMAT, "--dry-run", "--Werror", "--ferror-limit=1", "--style=file", path],
        capture_output=True,
        cwd=tree.workspace_root(),
        text=True,
    )
    return run.stderr.splitlines()[0] + "; run tools/dev fmt" if run.returncode != 0 else ""


class FormatTest(tree.StyleTest):
    def test_the_project(self):
        files = tree.Tree.of_workspace()
        self.assert_clean(unformatted(files.paths(".h", ".cc", ".cu")))

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
