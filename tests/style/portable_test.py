# SPDX-License-Identifier: Apache-2.0
"""The project works on any machine: it names no path of one machine and no host of one network."""

import posixpath
import re

from tests import report
from tests.style import tree

# Folders that every Debian has, and /no/such, which never exists. Any other absolute path exists on
# one machine only.
_COMMON_ROOTS = set("bin dev etc lib no opt proc run sbin srv sys tmp usr var".split())
_ABSOLUTE = re.compile(r"""(?:^|[\s"'=(`:])/([a-z][\w.-]*)/[\w.-]""")
# Routes of an HTTP server and methods of gRPC also begin with a slash.
_ROUTES = {"v1", "api"}

_CLIMBS = re.compile(r"""(?:^|[\s"'=(`])((?:\.\./)+[\w./-]*)""")

_URL = re.compile(r"https?://([\w.-]+)")
_PUBLIC_HOSTS = re.compile(
    r"(^|\.)(github\.com|debian\.org|arxiv\.org|wikipedia\.org|w3\.org|rfc-editor\.org|bazel\.build"
    r"|kubernetes\.io|prometheus\.io|grpc\.io|perfetto\.dev|python\.org|numpy\.org|example\.(com|org))$"
    r"|^(localhost|127\.0\.0\.1|0\.0\.0\.0|kubernetes\.default\.svc)$"
)

_TRACKER = re.compile(r"\b[Ii]ssue\s+#?\d+\b")


def local_paths(files):
    found = []
    for path in files.paths():
        for number, line in files.lines(path):
            for match in _ABSOLUTE.finditer(line):
                if match.group(1) not in _COMMON_ROOTS | _ROUTES:
                    found.append(
                        f"{path}:{number}: /{match.group(1)}/… exists on one machine; "
                        "take the path as an argument"
                    )
            for match in _CLIMBS.finditer(line):
                target = posixpath.normpath(posixpath.join(posixpath.dirname(path), match.group(1)))
                if target.startswith(".."):
                    found.append(
                        f"{path}:{number}: {match.group(1)} is outside the project; "
                        "take the path as an argument"
                    )
    return found


def private_references(files):
    found = []
    for path in files.paths():
        for number, line in files.lines(path):
            for match in _URL.finditer(line):
                if not _PUBLIC_HOSTS.search(match.group(1)):
                    found.append(
                        f"{path}:{number}: the host {match.group(1)} may be unknown elsewhere; "
                        "name a public one or none"
                    )
            if _TRACKER.search(line):
                found.append(f"{path}:{number}: a tracker's number means nothing here; say it")
    return found


class PortableTest(tree.StyleTest):
    def test_the_project(self):
        files = tree.Tree.of_workspace()
        self.assert_clean(local_paths(files) + private_references(files))

    def test_finds_a_place_of_one_machine(self):
        home = "/" "home"
        files = tree.Tree(
            {
                "docs/a.md": f"{home}/me/notes and /usr/share/doc\n[x](../README.md) ../" "../x\n",
                "a.cc": "double half = x / 2;  // and/or\n",
            }
        )
        self.assert_found(["docs/a.md:1", "docs/a.md:2"], local_paths(files))

    def test_finds_a_private_host_and_a_tracker(self):
        files = tree.Tree(
            {
                "a": "http" "://mirror.internal:8080/debian\n",
                "b": "is" "sue 12 is fixed\n",
                "c": "https" "://github.com/x\n",
            }
        )
        self.assert_found(["a:1: the host mirror.internal", "b:1"], private_references(files))


if __name__ == "__main__":
    report.main()
