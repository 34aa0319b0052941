# SPDX-License-Identifier: Apache-2.0
"""The messages of each release can be read by the next one: no number has got another meaning.

proto/released holds the messages of each release as text. `tools/dev protos 1.2.3` writes such a
file when a version is released.
"""

import os
import re
import sys

from tests import report
from tests.style import descriptors
from tests.style import tree

_FOLDER = "proto/released"
_CHANGELOG = "docs/CHANGELOG.md"


def text_of(files):
    """The messages in a Tree's .proto files, as a file of proto/released has them."""
    found, heading = [], None
    for (of, _), line in sorted(descriptors.lines_of(files)[0].items()):
        if of != heading:
            found += ["", of]
            heading = of
        found.append(f"  {line}")
    return "\n".join(found[1:]) + "\n"


def released_lines(text):
    """{(heading, number or method): line} of such a file."""
    found, heading = {}, None
    for line in text.splitlines():
        if line.startswith("  "):
            key = line.strip().split(":")[0]
            found[heading, int(key) if key.isdigit() else key] = line.strip()
        elif line and not line.startswith("#"):
            heading = line
    return found


def incompatible(files):
    """The lines of releases that the present .proto files have changed."""
    lines, reserved = descriptors.lines_of(files)
    found = []
    for path in (path for path in files.paths(".txt") if os.path.dirname(path) == _FOLDER):
        released = released_lines(files.text(path))
        referred = {word for line in released.values() for word in line.split()}
        for (heading, number), before in released.items():
            now = lines.get((heading, number))
            if now == before:
                continue
            if heading not in reserved:
                # The fields that refer to it are looked at, too, and must have gone.
                if heading.split()[1] in referred:
                    continue
                remedy = "nothing refers to it, so it is read by itself; keep it"
            elif now is not None:
                remedy = f"is now `{now}`; keep the field as it was, and add one"
            elif any(first <= number < end for first, end in reserved[heading]
                     if isinstance(number, int)):
                continue
            else:
                remedy = "is gone; reserve its number, and say why, or keep the method"
            found.append(f"{path}: {heading}, `{before}`: {remedy}")
    return found


def unrecorded(files):
    """Releases of the changelog whose messages nobody has written down."""
    return [f"{_CHANGELOG}: {version} is released; run `tools/dev protos {version}` on its commit"
            for version in re.findall(r"^## (\d\S+)$", files.text(_CHANGELOG), re.MULTILINE)
            if f"{_FOLDER}/{version}.txt" not in files]


class ReleasedProtosTest(tree.StyleTest):

    _PROTO = """
        syntax = "proto3"; package covey.proto;
        message Outer { uint64 size = 1; repeated Inner inners = 2; oneof body { string name = 3; }
                        map<string, uint32> counts = 4; optional bool set = 5; Kind kind = 6; }
        message Inner { float value = 1; }
        enum Kind { NONE = 0; BIG = 1; }
        service Work { rpc Do(Outer) returns (stream Inner); }
    """

    def found_after(self, *changes):
        """The violations when (before, after) texts are replaced in the proto of a release."""
        released = text_of(tree.Tree({"proto/a.proto": self._PROTO}))
        proto = self._PROTO
        for before, after in changes:
            self.assertIn(before, proto)
            proto = proto.replace(before, after)
        return incompatible(tree.Tree({"proto/a.proto": proto, "proto/released/1.txt": released}))

    def test_the_project(self):
        files = tree.Tree.of_workspace()
        self.assertIn("proto/released/0.1.0.txt", files)
        self.assert_clean(incompatible(files) + unrecorded(files))

    def test_additions_are_compatible(self):
        self.assert_clean(self.found_after(
            ("float value = 1;", "float value = 1; double more = 2;"),
            ("string name = 3;", "string name = 3; Other other = 7;"),
            ("BIG = 1;", "BIG = 1; SMALL = 2;"),
            ("enum Kind", "message Other { reserved 5; } enum Kind"),
            ("rpc Do", "rpc Undo(Inner) returns (Inner); rpc Do")))

    def test_finds_changes_of_fields(self):
        for before, after, now in (
                ("uint64 size", "uint32 size", "1: uint32 size"),
                ("uint64 size", "repeated uint64 size", "1: repeated uint64 size"),
                ("repeated Inner", "Inner", "2: covey.proto.Inner inners"),
                ("string name", "string title", "3: string title in body"),
                ("uint64 size = 1; repeated Inner inners = 2; oneof body {",
                 "repeated Inner inners = 2; oneof body { uint64 size = 1;",
                 "1: uint64 size in body"),
                ("<string, uint32>", "<string, uint64>", "2: uint64 value"),
                ("optional bool", "bool", "5: bool set"),
                ("BIG", "HUGE", "1: HUGE"),
                ("stream Inner", "Inner", "Do: covey.proto.Outer -> covey.proto.Inner")):
            self.assert_found([f"is now `{now}`"], self.found_after((before, after)))

    def test_finds_what_is_gone(self):
        self.assert_found(["`1: uint64 size`: is gone"], self.found_after(("uint64 size = 1;", "")))
        self.assert_found(["`1: BIG`: is gone"], self.found_after(("BIG = 1;", "")))
        self.assert_found(["`Do: covey.proto.Outer -> stream covey.proto.Inner`: is gone"],
                          self.found_after(("rpc Do(Outer) returns (stream Inner);", "")))
        self.assert_clean(self.found_after(("uint64 size = 1;", "reserved 1;"),
                                           ("BIG = 1;", "reserved 1;")))
        # Another number does not help.
        self.assert_found(["`1: uint64 size`: is gone"],
                          self.found_after(("uint64 size = 1;", "reserved 9; uint64 size = 8;")))

    def test_a_message_may_go_with_the_last_field_that_refers_to_it(self):
        inner = ("message Inner { float value = 1; }", "")
        to_outer = ("stream Inner", "stream Outer")
        self.assert_found(["Do: covey.proto.Outer"],
                          self.found_after(inner, to_outer, ("repeated Inner inners = 2;",
                                                             "reserved 2;")))
        self.assert_found(["service covey.proto.Work, `Do"], self.found_after(
            ("service Work { rpc Do(Outer) returns (stream Inner); }", "")))

    def test_finds_a_release_that_is_not_written_down(self):
        changelog = "## 1.3.0 (unreleased)\n## 1.2.0\n### Added\n## 1.1.0\n"
        files = tree.Tree({_CHANGELOG: changelog, "proto/released/1.1.0.txt": ""})
        self.assert_found(["1.2.0 is released"], unrecorded(files))


def main():
    if sys.argv[1:2] != ["--write"]:
        report.main()
        return
    [version] = sys.argv[2:]
    with open(os.path.join(tree.workspace_root(), _FOLDER, f"{version}.txt"), "w",
              encoding="utf-8") as file:
        file.write(f"# The messages of release {version}. Written once, by "
                   "tests/style/released_protos_test.py; never changed.\n\n")
        file.write(text_of(tree.Tree.of_workspace()))


if __name__ == "__main__":
    main()
