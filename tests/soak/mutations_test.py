# SPDX-License-Identifier: Apache-2.0
"""Which changes of a piece of C++ text tests/soak/mutants tries."""

import unittest

from tests import report
from tests.soak import mutations


class MutationsTest(unittest.TestCase):
    def changed(self, text, kind=None):
        """The lines that are different after each mutation, of one kind or all."""
        results = []
        for mutation in mutations.mutations(text):
            if kind in (None, mutation.kind):
                after = mutation.apply(text).split("\n")
                self.assertEqual(len(text.split("\n")), len(after))
                line = mutation.line(text)
                results.append(after[line - 1].strip())
        return results

    def test_comparisons_are_off_by_one_or_turned(self):
        self.assertEqual(["x = a <= b;", "x = a == b;", "x = a > b;"],
                         [line for text in ("x = a < b;", "x = a != b;", "x = a >= b;")
                          for line in self.changed(text, "comparison")])

    def test_conditions_are_swapped_and_negated(self):
        text = "  if (a && b(c)) d = 7;"
        self.assertEqual(["if (a || b(c)) d = 7;"], self.changed(text, "condition"))
        self.assertEqual(["if (!(a && b(c))) d = 7;"], self.changed(text, "negated condition"))
        self.assertEqual([], self.changed("  if (int a = b; a) c();", "negated condition"))

    def test_constants_change(self):
        self.assertEqual(["f(1, false, k2, 0x10, 1.5);", "f(0, true, k2, 0x10, 1.5);"],
                         self.changed("f(0, false, k2, 0x10, 1.5);", "constant"))
        self.assertEqual(["x = uint64_t{2} << 3;", "x = uint64_t{1} << 4;"],
                         self.changed("x = uint64_t{1} << 3;", "constant"))

    def test_sums_and_differences_change(self):
        self.assertEqual(["x = a - b;"], self.changed("x = a + b;"))
        self.assertEqual(["x = b.c - a;", "x = a + b.c;"], self.changed("x = a - b.c;"))
        self.assertEqual(["x -= y;"], self.changed("x += y;", "arithmetic"))
        # Neither a pointer nor a negative number is a difference.
        self.assertEqual([], self.changed("x = a->b(-c);"))
        # Operands of which it sees a part only stay where they are.
        self.assertEqual([], self.changed("x = a[i] - b;", "swapped operands"))
        self.assertEqual([], self.changed("x = a - b(c);", "swapped operands"))
        self.assertEqual([], self.changed("x = c - a - b;", "swapped operands")[1:])

    def test_guards_are_removed(self):
        self.assertEqual(["", ""], self.changed(
            "  if (a(b)) return c;\n  COVEY_RETURN_IF_ERROR(d(e));\n", "removed guard"))
        # The statement goes on, so nothing can be removed with one line.
        self.assertEqual([], self.changed("  if (a(b)) return c(\n      d);\n", "removed guard"))

    def test_statements_are_dropped(self):
        text = ("{\n  a.b(c);\n  d_ = e;\n  ++f;\n  g[h] += i;\n  *j = k;\n  const int l = m;\n"
                "  return n(o);\n  p(\n      q);\n}\n")
        self.assertEqual(
            [2, 3, 4, 5, 6], [m.line(text) for m in mutations.mutations(text)
                              if m.kind == "dropped statement"])

    def test_leaves_what_no_test_should_notice(self):
        for text in (
                "// a < b && c",
                "/* a < b\n   && 1 */",
                'x("a < b && 1");',
                "x('1', '\"');",
                'x(R"(a < 1)");',
                "#include <vector>\n#define A (b < 1)",
                "#if A == 1 && \\\n    B < 2",
                '  LogWarning("late", {{"count", a + 1}});',
                '  LogError("late",\n           {{"count", a + 1}});',
                '  return absl::InternalError(absl::StrCat("late by ", a + 1));',
                "  COVEY_CHECK(a < b && c > 1);",
                "static_assert(a == 1);",
                "using A = B<C, 1>;",
                "namespace a::b {",
                "std::vector<std::pair<A, B>> a;",
                "  const int64_t a = B();"):
            self.assertEqual([], self.changed(text), text)

    def test_says_what_was_changed(self):
        text = "void f() {\n  if (a < b) return;\n}\n"
        self.assertEqual(
            ["removed guard: `if (a < b) return;` -> ``",
             "negated condition: `if (a < b) return;` -> `if (!(a < b)) return;`",
             "comparison: `if (a < b) return;` -> `if (a <= b) return;`"],
            [mutation.show(text) for mutation in mutations.mutations(text)])


if __name__ == "__main__":
    report.main()
