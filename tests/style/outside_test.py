# SPDX-License-Identifier: Apache-2.0
"""Programs outside the role folders build, as README.md tells users to write them."""

import re

from tests import report
from tests.style import tree

_OUTSIDE = "tests/outside"
_PUBLIC = {"//:covey_client", "//:covey_worker"}
_LABEL = re.compile(r'"((?://|@|:)[^"]*)"')
_EXAMPLE = re.compile(r"^cc_binary\(.*?^\)", re.MULTILINE | re.DOTALL)


def privileged(files):
    """Reasons why the programs of tests/outside would not prove that a user's folder can be built.
    """
    found = [
        f"{_OUTSIDE}/BUILD: depends on {label}, which users cannot see; "
        "let one of the public libraries export it"
        for label in _LABEL.findall(files.text(f"{_OUTSIDE}/BUILD"))
        if label not in _PUBLIC | {"//visibility:public"}
    ]
    if f'"-//{_OUTSIDE}/..."' not in files.text("BUILD"):
        found.append(f"BUILD: a package group includes {_OUTSIDE}; take it out of the group")
    return found


def untried_examples(files):
    """Examples of README.md that tests/outside does not build."""
    build = files.text(f"{_OUTSIDE}/BUILD")
    examples = _EXAMPLE.findall(files.text("README.md"))
    found = [
        f"README.md: no test builds this example; put it into {_OUTSIDE}/BUILD: {example}"
        for example in examples
        if example not in build
    ]
    return found if examples else ["README.md: shows no cc_binary; show how users build theirs"]


class OutsideTest(tree.StyleTest):
    def test_the_project(self):
        files = tree.Tree.of_workspace()
        self.assert_clean(privileged(files) + untried_examples(files))

    def test_finds_a_privilege(self):
        files = tree.Tree(
            {"tests/outside/BUILD": 'deps = ["//:covey_client", "//client:handle"]\n',
             "BUILD": 'packages = ["//tests/..."]\n'}
        )
        self.assert_found(["//client:handle", "BUILD: a package group"], privileged(files))

    def test_finds_an_example_that_nothing_builds(self):
        example = 'cc_binary(\n    name = "mine",\n)\n'
        for build, readme, expected in (
            (example, f"```\n{example}```\n", []),
            ("", f"```\n{example}```\n", ["no test builds"]),
            (example, "", ["shows no cc_binary"]),
        ):
            files = tree.Tree({"tests/outside/BUILD": build, "README.md": readme})
            self.assert_found(expected, untried_examples(files))


if __name__ == "__main__":
    report.main()
