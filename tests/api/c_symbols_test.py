# SPDX-License-Identifier: Apache-2.0
"""libcovey.so shows the functions of covey.h and nothing else, so it cannot clash with a program's
own Protobuf, gRPC or C++ library."""

import pathlib
import re
import subprocess
import unittest

from tests import report

_FOLDER = pathlib.Path(__file__).parents[2] / "client/c"


def _shown():
    """(type, name) of each symbol that the library defines for others."""
    listing = subprocess.run(["nm", "-D", "--defined-only", _FOLDER / "libcovey.so.0"],
                             capture_output=True, text=True, check=True).stdout
    return [tuple(line.split()[1:3]) for line in listing.splitlines()]


def _declared():
    text = (_FOLDER / "covey.h").read_text()
    return sorted(re.findall(r"^COVEY_API [^(;]*?(covey_\w+)\(", text, re.MULTILINE))


class SymbolsTest(unittest.TestCase):
    def test_shows_what_the_header_declares(self):
        names = sorted(name.split("@")[0] for kind, name in _shown() if kind == "T")
        self.assertGreater(len(names), 40)
        self.assertEqual(_declared(), names)

    def test_shows_nothing_else(self):
        others = [(kind, name) for kind, name in _shown()
                  if kind != "T" and (kind, name) != ("A", "COVEY_1")]
        self.assertEqual([], others)

    def test_is_found_by_its_name(self):
        dynamic = subprocess.run(["readelf", "-d", _FOLDER / "libcovey.so.0"],
                                 capture_output=True, text=True, check=True).stdout
        self.assertIn("Library soname: [libcovey.so.0]", dynamic)


if __name__ == "__main__":
    report.main()
