# SPDX-License-Identifier: Apache-2.0
"""Comments that are required, and comments that are refused."""

import re

from tests import report
from tests.style import tree

_CODE = (".h", ".cc", ".cu", ".proto", ".py", ".bzl", "BUILD", "WORKSPACE")
_LATER = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
_RECORDED = re.compile(r"\(ADR-\d{4}\)")
# Plain values; a field of a message type is documented by that message.
_PROTO_VALUE = re.compile(
    r"^\s*(?:(?:repeated|optional) )?"
    r"(?:double|float|bool|string|bytes|[us]?int\d+|s?fixed\d+|map<.*>) \w+ = \d+[ ;\[]"
)
# Requests and replies are documented by their service.
_PROTO_MESSAGE = re.compile(r"^\s*message (?!\w+(?:Request|Reply)\b)|^service ")


def unrecorded_promises(files):
    """A comment about later work names the decision that covers it."""
    return [
        f"{path}:{number}: do it, or name the decision that puts it off, as in (ADR-0001)"
        for path in files.paths(*_CODE)
        for number, line in files.lines(path)
        if _LATER.search(line) and not _RECORDED.search(line)
    ]


def uncommented_protos(files):
    """A field states its unit, its writer and the meaning of absence; a message states what it is.

    One comment may cover a run of fields.
    """
    found = []
    for path in files.paths(".proto"):
        explained = False
        for number, line in files.lines(path):
            value = _PROTO_VALUE.match(line)
            if (value or _PROTO_MESSAGE.match(line)) and not explained and "//" not in line:
                found.append(
                    f"{path}:{number}: `{line.strip()}` has no comment; "
                    "say what it means, its unit, who sets it, what absence means"
                )
            explained = line.strip().startswith("//") or (explained and bool(value))
    return found


def headless_builds(files):
    """The first two lines of a BUILD file say what the folder is and which file to open first."""
    return [
        f"{path}:1: begin with two comment lines: what the folder is, which file to open first"
        for path in files.paths("BUILD")
        if [line[:2] for line in files.text(path).splitlines()[:2]] != ["# ", "# "]
    ]


class CommentsTest(tree.StyleTest):
    def test_the_project(self):
        files = tree.Tree.of_workspace()
        self.assert_clean(
            unrecorded_promises(files) + uncommented_protos(files) + headless_builds(files)
        )

    def test_finds_a_promise_without_a_decision(self):
        word = "TO" "DO"
        files = tree.Tree({"a.cc": f"// {word}: later\n// {word}(ADR-0003): later\n"})
        self.assert_found(["a.cc:1"], unrecorded_promises(files))

    def test_finds_an_uncommented_field_and_message(self):
        files = tree.Tree(
            {
                "proto/a.proto": (
                    "message Bare {\n"
                    "  uint64 bare = 1;\n"
                    "  // Set by the sender.\n"
                    "  uint64 first = 2;\n"
                    "  repeated uint64 second = 3;\n"
                    "\n"
                    "  map<string, uint64> after_a_gap = 4;\n"
                    "  bool trailing = 5;  // Absent = no.\n"
                    "  Header header = 6;\n"
                    "}\n"
                    "message BareRequest {}\n"
                )
            }
        )
        self.assert_found(["a.proto:1", "a.proto:2", "a.proto:7"], uncommented_protos(files))

    def test_finds_a_headless_build(self):
        files = tree.Tree({"a/BUILD": "# One line.\ncc_library()\n", "b/BUILD": "# A.\n# B.\n"})
        self.assert_found(["a/BUILD:1"], headless_builds(files))


if __name__ == "__main__":
    report.main()
