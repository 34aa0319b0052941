# SPDX-License-Identifier: Apache-2.0
"""What files include.

A source file includes its own header first, which proves that the header compiles alone;
tools/bazel/headers.bzl checks only the headers that no such file proves.

A file includes what it uses. The compiler cannot see all omissions, since --config=opt gives each file
the headers of tools/bazel/precompiled.h. So this test looks for the names that the table below has.
A header that is included by way of the project's own headers counts.
"""

import re

from tests import report
from tests.style import tree

_DIRECTIVE = re.compile(r"^\s*#\s*(\w+)\s*(.*?)\s*$", re.MULTILINE)

# The headers that tools/bazel/precompiled.h supplies unasked, and the names by which their use is seen.
_NAMES = {
    "absl/container/btree_map.h": r"absl::btree_map<",
    "absl/functional/function_ref.h": r"absl::FunctionRef<",
    "absl/memory/memory.h": r"absl::WrapUnique\(",
    "absl/status/status.h": r"absl::(\w+Error|OkStatus)\(|absl::Status\b",
    "absl/status/statusor.h": r"absl::StatusOr<",
    "absl/strings/ascii.h": r"absl::(Ascii|ascii_|Strip(Leading|Trailing)?Ascii)\w+\(",
    "absl/strings/match.h": r"absl::(StrContains|StartsWith|EndsWith|EqualsIgnoreCase)\(",
    "absl/strings/numbers.h": r"absl::Simple(Atoi|Atof|Atod|Atob|HexAtoi)\(",
    "absl/strings/str_cat.h": r"absl::(StrCat|StrAppend|Hex)\(",
    "absl/strings/str_format.h": r"absl::(StrFormat|StrAppendFormat)\(",
    "absl/strings/str_join.h": r"absl::StrJoin\(",
    "absl/strings/str_split.h": r"absl::(StrSplit|ByChar|ByString|MaxSplits|SkipEmpty)\(",
    "absl/strings/string_view.h": r"absl::string_view\b",
    "absl/strings/strip.h": r"absl::(Strip|Consume)(Prefix|Suffix)\(",
    "absl/time/time.h": r"absl::(Time|\w*Duration|\w*[Ss]econds|InfiniteFuture|InfinitePast)\b",
    "algorithm": (
        r"std::(all_of|any_of|clamp|copy|copy_n|count|count_if|equal|fill|fill_n|find|find_if"
        r"|lower_bound|max|max_element|min|min_element|none_of|nth_element|remove_if|reverse|sort"
        r"|stable_sort|transform|unique|upper_bound|ranges::\w+)\("
    ),
    "array": r"std::array<",
    "cerrno": r"\berrno\b",
    "cmath": (
        r"std::(abs|ceil|exp|fabs|floor|fma|isfinite|isnan|llround|log|log2|lround|pow|round|sqrt)\("
    ),
    "cstddef": r"std::(byte|ptrdiff_t|size_t)\b|\boffsetof\(",
    "cstdint": r"\bu?int(8|16|32|64)_t\b",
    "cstdlib": r"std::(abort|exit|getenv|strtol|strtod)\(",
    "cstring": r"std::(memcmp|memcpy|memmove|memset|strerror|strlen)\(",
    "deque": r"std::deque<",
    "functional": r"std::(function|greater|hash|less)<",
    "gmock/gmock.h": r"\b(EXPECT|ASSERT)_THAT\(|\b(ElementsAre|HasSubstr|SizeIs)\(",
    "gtest/gtest.h": r"^TEST(_[FP])?\(",
    "limits": r"std::numeric_limits<",
    "map": r"std::(multi)?map<",
    "memory": r"std::((unique|shared|weak)_ptr<|make_(unique|shared)\b)",
    "numeric": r"std::(accumulate|gcd|iota|partial_sum)\(",
    "optional": r"std::(optional<|nullopt\b)",
    "set": r"std::(multi)?set<",
    "span": r"std::span<",
    "string": r"std::(string\b|to_string\()",
    "tuple": r"std::(tuple<|tie\(|make_tuple\()",
    "utility": r"std::(exchange|forward|move|pair|swap)[<(]",
    "vector": r"std::vector<",
}
_INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]', re.MULTILINE)
_PRECOMPILED = "tools/bazel/precompiled.h"


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


# Headers of programs in C, which include <stdint.h> and not <cstdint>.
_C_HEADERS = ("client/c/covey.h",)


def used_but_not_included(files):
    """Files that use a name of the table without its header."""
    included = {path: _INCLUDE.findall(files.text(path)) for path in files.paths(".h", ".cc")}
    reached = {}

    def reach(path):
        """All that `path` includes, directly or by way of the project's headers."""
        if path not in reached:
            reached[path] = set()  # a header that includes itself ends here
            for header in included.get(path, ()):
                reached[path] |= {header} | reach(header)
        return reached[path]

    found = []
    for path in included:
        code = tree.code_only(files.text(path))
        for header, names in _NAMES.items():
            use = re.search(names, code, re.MULTILINE)
            if use and header not in reach(path) and path not in (_PRECOMPILED, *_C_HEADERS):
                line = code.count("\n", 0, use.start()) + 1
                found.append(f"{path}:{line}: {use.group()} needs {header}; include it")
    return found


def precompiled_without_names(files):
    """Headers that every file gets unasked, and whose absence nothing would notice."""
    return [
        f"{_PRECOMPILED}: {header} has no names in tests/style/includes_test.py; add them"
        for header in _INCLUDE.findall(files.text(_PRECOMPILED))
        # Only generated code uses those of Protobuf.
        if header not in _NAMES and not header.startswith("google/protobuf/")
    ]


class IncludesTest(tree.StyleTest):
    def test_the_project(self):
        files = tree.Tree.of_workspace()
        self.assert_clean(own_header_late(files))
        self.assert_clean(used_but_not_included(files))
        self.assert_clean(precompiled_without_names(files))

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

    def test_finds_names_without_their_headers(self):
        files = tree.Tree(
            {
                "a/direct.h": "#include <vector>\nstd::vector<int> x;\n",
                "a/by_header.cc": '#include "a/direct.h"\nstd::vector<int> y;\n',
                "a/comment.cc": "// std::map<int, int>\n",
                "a/missing.cc": '#include "a/direct.h"\n\nstd::map<int, int> z;\n',
            }
        )
        self.assert_found(["a/missing.cc:3: std::map< needs map"], used_but_not_included(files))

    def test_finds_a_precompiled_header_without_names(self):
        files = tree.Tree({_PRECOMPILED: "#include <map>\n#include <regex>\n"})
        self.assert_found(["regex"], precompiled_without_names(files))


if __name__ == "__main__":
    report.main()
