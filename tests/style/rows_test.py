# SPDX-License-Identifier: Apache-2.0
"""docs/ROWS.md names files, tests, cases and planted bugs that exist, and counts its rows."""

import ast
import collections
import posixpath
import re

from tests import report
from tests.style import tree

_PAGE = "docs/ROWS.md"
_PLANTS = "common/base/planted_bug.cc"
_ROWS = 56
_STATES = ("shown", "partly", "open")
_COLUMNS = 6

_ROW = re.compile(r"^\| \*\*([a-z0-9-]+)\*\*: ")
_TOKEN = re.compile(r"`([^`]+)`")
_TARGET = re.compile(r"^//[\w/]+:\w+$")
_CASE = re.compile(r"^[A-Z]\w*\.\w+$")
_PATH = re.compile(r"^\w+(/[\w.]+)+$")
_LINK = re.compile(r"\]\(([\w./]+\.md)#([\w-]+)\)")
_STATE = re.compile(r"^(?:shown|(?:partly|open): \S.*)$")
_SUMMARY = re.compile(
    r"^Of (\d+) rows (\d+) are shown, (\d+) are partly shown, and (\d+) are open\.", re.MULTILINE)
_GTEST = re.compile(r"^(?:TYPED_)?TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\)", re.MULTILINE)
_PLANT = re.compile(r'return "([a-z-]+)";')

Row = collections.namedtuple("Row", "line name implementation tests control figure state")


def _rows(files):
    found = []
    for number, line in files.lines(_PAGE):
        if match := _ROW.match(line):
            cells = re.split(r" *\| *", line.strip("| "))
            cells += [""] * (_COLUMNS - len(cells))
            found.append(Row(number, match.group(1), *cells[1:_COLUMNS]))
    return found


def wrong_counts(files):
    """Rows that are missing, twice there or in no known state, and a summary that miscounts."""
    rows = _rows(files)
    found = []
    if len(rows) != _ROWS:
        found.append(f"{_PAGE}: has {len(rows)} rows; there are {_ROWS}")
    for name, count in collections.Counter(row.name for row in rows).items():
        if count > 1:
            found.append(f"{_PAGE}: {name} has {count} rows; keep one")
    for row in rows:
        if not _STATE.match(row.state):
            found.append(f"{_PAGE}:{row.line}: the state of {row.name} is '{row.state}'; write "
                         "'shown', 'partly: WHAT IS MISSING' or 'open: WHAT IT WAITS FOR'")
        elif row.state == "shown" and not any(map(_TARGET.match, _TOKEN.findall(row.tests))):
            found.append(f"{_PAGE}:{row.line}: {row.name} is shown by no test; name its target")
    states = collections.Counter(row.state.split(":")[0] for row in rows)
    counts = [str(len(rows)), *(str(states[state]) for state in _STATES)]
    summary = _SUMMARY.search(files.text(_PAGE))
    if summary is None or list(summary.groups()) != counts:
        found.append(f"{_PAGE}: the summary is wrong; write 'Of {counts[0]} rows {counts[1]} are "
                     f"shown, {counts[2]} are partly shown, and {counts[3]} are open.'")
    return found


def wrong_names(files):
    """Files, targets, cases and planted bugs that rows name but that do not exist."""
    targets, plants = _test_targets(files), set(_PLANT.findall(files.text(_PLANTS)))
    found = []
    for row in _rows(files):
        where = f"{_PAGE}:{row.line}: {row.name} names"
        for cell in row[2:]:
            cases = None  # of the target named last
            for token in _TOKEN.findall(cell):
                if _TARGET.match(token):
                    cases = set()
                    if token in targets:
                        cases = _cases(files, targets[token])
                    else:
                        found.append(f"{where} {token}, which is no test target")
                elif _CASE.match(token):
                    if cases is None:
                        found.append(f"{where} {token} without its target; name that before it")
                    elif token not in cases:
                        found.append(f"{where} {token}, which its target does not have")
                elif _PATH.match(token):
                    if not any(path == token or path.startswith(token + "/")
                               for path in files.paths()):
                        found.append(f"{where} {token}, which does not exist")
                elif cell is row.control and token not in plants:
                    found.append(f"{where} {token}, which is no planted bug of {_PLANTS}")
    return found


def wrong_links(files):
    """Links of rows to headings that do not exist."""
    found = []
    for row in _rows(files):
        for page, anchor in _LINK.findall(row.figure):
            path = posixpath.join(posixpath.dirname(_PAGE), page)
            if path not in files or anchor not in _anchors(files.text(path)):
                found.append(f"{_PAGE}:{row.line}: {row.name} links to {page}#{anchor}, which does "
                             "not exist")
    return found


def _anchors(text):
    """Of headings, as GitHub makes them; the second of the same words ends in -1."""
    found = set()
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        first = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        anchor, number = first, 0
        while anchor in found:
            number += 1
            anchor = f"{first}-{number}"
        found.add(anchor)
    return found


def _test_targets(files):
    """{label: paths of its sources}, of the targets that `bazel test` runs."""
    found = {}
    for path in files.paths("BUILD"):
        folder = posixpath.dirname(path)
        if posixpath.basename(path) != "BUILD":
            continue
        for call, names in _rules(ast.parse(files.text(path))):
            values = {argument.arg: _value(argument.value, names) for argument in call.keywords}
            if getattr(call.func, "id", "").endswith("_test"):
                found[f"//{folder}:{values['name']}"] = [
                    posixpath.join(folder, source) for source in values["srcs"]]
    return found


def _rules(build):
    """(call, {variable: value}) of each target; those made in a loop are one for each turn."""
    for statement in build.body:
        expression = getattr(statement, "value", None)
        if isinstance(expression, ast.Call):
            yield expression, {}
        elif isinstance(expression, ast.ListComp):
            [loop] = expression.generators
            for value in _value(loop.iter, {}):
                names = [loop.target] if isinstance(loop.target, ast.Name) else loop.target.elts
                values = [value] if isinstance(loop.target, ast.Name) else value
                yield expression.elt, {name.id: each for name, each in zip(names, values)}


def _value(expression, names):
    """Of an expression in a BUILD file; None of those that tests' names and sources do not have."""
    if isinstance(expression, ast.Constant):
        return expression.value
    if isinstance(expression, ast.Name):
        return names.get(expression.id)
    if isinstance(expression, (ast.List, ast.Tuple)):
        return [_value(element, names) for element in expression.elts]
    if isinstance(expression, ast.BinOp) and isinstance(expression.op, ast.Add):
        left, right = _value(expression.left, names), _value(expression.right, names)
        return None if left is None or right is None else left + right
    return None


def _cases(files, sources):
    """"Suite.Case" of GoogleTest, and "Class.test_case" of Python."""
    found = set()
    for path in sources:
        if path.endswith(".cc"):
            found.update(map(".".join, _GTEST.findall(files.text(path))))
        elif path.endswith(".py"):
            for node in ast.parse(files.text(path)).body:
                if isinstance(node, ast.ClassDef):
                    found.update(f"{node.name}.{each.name}" for each in node.body
                                 if isinstance(each, ast.FunctionDef)
                                 and each.name.startswith("test_"))
    return found


class RowsTest(tree.StyleTest):
    def test_the_project(self):
        files = tree.Tree.of_workspace()
        self.assert_clean(wrong_counts(files) + wrong_names(files) + wrong_links(files))

    @staticmethod
    def page(*rows, summary="Of 56 rows 56 are shown, 0 are partly shown, and 0 are open."):
        """A tree whose page has these rows, filled up to as many as there have to be."""
        rows = [*rows, *(f"| **filler-{number}**: it | `a/a.cc` | `//a:a_test` | none | | shown |"
                         for number in range(_ROWS - len(rows)))]
        return tree.Tree({
            _PAGE: "\n".join([summary, *rows]),
            _PLANTS: 'return "lose-pushes";\n',
            "docs/FIGURES.md": "## How fast: pushes\n",
            "a/BUILD": 'cc_test(\n    name = "a_test",\n    srcs = ["a_test.cc"],\n)\n'
                       'cc_binary(\n    name = "a",\n    srcs = ["a.cc"],\n)\n'
                       '[\n    py_test(\n        name = name,\n        srcs = [name + ".py"],\n'
                       '    )\n    for name in ["b_test"]\n]\n'
                       '[\n    sh_test(\n        name = name,\n        srcs = ["with.sh"],\n'
                       '        args = ["$(location %s)" % program] + words,\n    )\n'
                       '    for name, program, words in [("c", "//a:a_test", ["--long"])]\n]\n',
            "a/a.cc": "", "a/with.sh": "",
            "a/a_test.cc": "TEST(Pushes, Arrive) {}\nTEST_P(\n    Pulls, Wait) {}\n",
            "a/b_test.py": "class BTest:\n    def test_it(self): pass\n"
                           "    def helps(self): pass\n",
        })

    def assert_only(self, expected, *rows):
        """The names and links of such rows are wrong in these ways, and in no other."""
        files = self.page(*rows)
        self.assert_clean(wrong_counts(files))
        self.assert_found(expected, wrong_names(files) + wrong_links(files))

    def test_takes_what_exists(self):
        self.assert_only([], "| **x**: it | `a/a.cc`, `a` | `//a:a_test` `Pushes.Arrive`, "
                         "`Pulls.Wait`; `//a:b_test` `BTest.test_it`; `//a:c` | `lose-pushes` | "
                         "[5 s](FIGURES.md#how-fast-pushes) | shown |")

    def test_finds_a_wrong_file(self):
        self.assert_only(["x names a/gone.cc"],
                         "| **x**: it | `a/a.cc`, `a/gone.cc` | `//a:a_test` | none | | shown |")

    def test_finds_a_wrong_target(self):
        self.assert_only(["x names //a:gone_test, which", "y names //a:a, which"],
                         "| **x**: it | none | `//a:gone_test`, `//a:a_test` | none | | shown |",
                         "| **y**: it | none | `//a:a` | none | | shown |")

    def test_finds_a_wrong_case(self):
        self.assert_only(
            ["x names Pushes.Vanish", "y names BTest.helps", "z names Pushes.Arrive without"],
            "| **x**: it | none | `//a:a_test` `Pushes.Arrive`, `Pushes.Vanish` | none | | shown |",
            "| **y**: it | none | `//a:b_test` `BTest.helps` | none | | shown |",
            "| **z**: it | none | `//a:a_test` | `Pushes.Arrive` | | shown |")

    def test_finds_a_wrong_planted_bug(self):
        self.assert_only(["x names keep-pushes"],
                         "| **x**: it | none | `//a:a_test` | `lose-pushes`, `keep-pushes` | | "
                         "shown |")

    def test_finds_a_wrong_link(self):
        self.assert_only(["x links to FIGURES.md#how-slow", "x links to GONE.md#it"],
                         "| **x**: it | none | `//a:a_test` | none | [1](FIGURES.md#how-slow), "
                         "[2](GONE.md#it) | shown |")

    def test_finds_wrong_counts(self):
        self.assert_clean(wrong_counts(self.page()))
        more = [f"| **more-{number}**: it | none | `//a:a_test` | none | | shown |"
                for number in range(_ROWS + 1)]
        self.assert_found(["has 57 rows", "write 'Of 57 rows 57"], wrong_counts(self.page(*more)))
        twice = "| **x**: it | none | `//a:a_test` | none | | shown |"
        self.assert_found(["x has 2 rows"], wrong_counts(self.page(twice, twice)))

    def test_finds_a_wrong_state(self):
        for state in ("done", "partly", "open: ", "", "shown: mostly"):
            row = f"| **x**: it | none | `//a:a_test` | none | | {state} |"
            self.assertIn("the state of x is", wrong_counts(self.page(row))[0])
        row = "| **x**: it | none | none | none | | open: a planner |"
        self.assert_found(["write 'Of 56 rows 55 are shown, 0 are partly shown, and 1 are open.'"],
                          wrong_counts(self.page(row)))
        row = "| **x**: it | none | by hand | none | | shown |"
        self.assert_found(["x is shown by no test"], wrong_counts(self.page(row)))


if __name__ == "__main__":
    report.main()
