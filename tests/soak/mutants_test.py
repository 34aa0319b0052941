# SPDX-License-Identifier: Apache-2.0
"""How tests/soak/mutants goes on from change to change; a function stands for builds and tests."""

import pathlib
import tempfile
import unittest

from tests import report
from tests.soak import mutants

_PATH = "a/b/c.cc"
_TEXT = "int F(int a, int b) {\n  if (a < b) return 1;\n  return 0;\n}\n"


class FakeBazel:
    """Tests that fail when the condition or the first constant is another one."""

    def __init__(self, tree):
        self._tree = tree
        self.seen = []

    def tests_of(self, path):
        return ["//x:far_test", "//a/b:own_test", "//a:near_test"]

    def test(self, labels, seconds):
        text = (self._tree / _PATH).read_text(encoding="utf-8")
        self.seen.append((labels, text))
        if text == _TEXT:
            return mutants.SURVIVED
        if "!(" in text:
            return mutants.NO_CODE
        noticed = "a < b" not in text if labels == ["//a/b:own_test"] else "return 1" not in text
        return mutants.KILLED if noticed else mutants.SURVIVED


class MutantsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / _PATH).parent.mkdir(parents=True)
        (self.folder / _PATH).write_text(_TEXT, encoding="utf-8")
        self.said = []

    def hunt(self, count=100, tests_max=20):
        self.bazel = FakeBazel(self.folder)
        chosen = mutants.choose({_PATH: _TEXT}, count, seed=1)
        runner = mutants.Hunt(self.folder, self.bazel, self.folder / "results", 60, tests_max,
                              self.said.append)
        return runner.run({_PATH: _TEXT}, chosen)

    def test_tells_what_was_noticed_from_what_was_not(self):
        outcomes = {mutant.mutation.show(_TEXT): outcome for mutant, outcome in self.hunt()}
        self.assertEqual(
            {"removed guard: `if (a < b) return 1;` -> ``": mutants.KILLED,
             "negated condition: `if (a < b) return 1;` -> `if (!(a < b)) return 1;`":
                 mutants.NO_CODE,
             "comparison: `if (a < b) return 1;` -> `if (a <= b) return 1;`": mutants.KILLED,
             "constant: `if (a < b) return 1;` -> `if (a < b) return 2;`": mutants.KILLED,
             "constant: `return 0;` -> `return 1;`": mutants.SURVIVED}, outcomes)
        lines = mutants.summary({_PATH: _TEXT}, self.hunt())
        self.assertEqual(
            ["SURVIVED a/b/c.cc:3: constant: `return 0;` -> `return 1;`",
             "3 killed, 1 survived, 1 does not compile, 0 no time"], lines)

    def test_leaves_the_copy_as_it_was(self):
        self.hunt()
        self.assertEqual(_TEXT, (self.folder / _PATH).read_text(encoding="utf-8"))

    def test_tests_of_the_package_come_first_and_others_only_after_them(self):
        self.hunt()
        self.assertEqual(["//a/b:own_test"], self.bazel.seen[0][0])
        self.assertEqual(["//a:near_test", "//x:far_test"], self.bazel.seen[1][0])
        killed_by_own = [labels for labels, text in self.bazel.seen if "a <= b" in text]
        self.assertEqual([["//a/b:own_test"]], killed_by_own)

    def test_tries_no_more_tests_than_it_may(self):
        self.hunt(tests_max=2)
        self.assertIn(["//a:near_test"], [labels for labels, _ in self.bazel.seen])
        self.assertNotIn("//x:far_test", sum((labels for labels, _ in self.bazel.seen), []))

    def test_goes_on_where_it_was_ended(self):
        first = self.hunt(count=3)
        again = self.hunt(count=3)
        self.assertEqual(first, again)
        # Only that the tests pass without a change is tried again.
        self.assertEqual({_TEXT}, {text for _, text in self.bazel.seen})
        self.assertEqual(self.said[:3], self.said[3:])

    def test_the_seed_says_which_changes(self):
        texts = {_PATH: _TEXT}
        self.assertEqual(mutants.choose(texts, 2, 7), mutants.choose(texts, 2, 7))
        self.assertEqual(2, len(mutants.choose(texts, 2, 7)))
        self.assertGreater(
            len({tuple(mutants.choose(texts, 2, seed)) for seed in range(20)}), 5)

    def test_tests_that_fail_without_a_change_tell_nothing(self):
        (self.folder / _PATH).write_text(_TEXT.replace("a < b", "b < a"), encoding="utf-8")
        with self.assertRaises(SystemExit):
            self.hunt()


if __name__ == "__main__":
    report.main()
