# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of a Python file and reports each one to Bazel: passed, failed, or skipped.

    if __name__ == "__main__":
        report.main()

Without this, Bazel's own test.xml reports only that the file passed, even if tests were skipped.

Ratios of speeds hold on a quiet machine only, so a test asserts them only with --speeds, which
tests/soak passes:

    if report.speeds_count():
        self.assertGreater(with_it / without_it, 1.5)
"""

import os
import sys
import time
import unittest
import xml.etree.ElementTree


_SPEEDS = "--speeds"
_speeds_count = False


def speeds_count():
    """Whether this run may assert speeds."""
    return _speeds_count


class _Result(unittest.TextTestResult):
    """Records the outcome of each test, in the order in which they ended."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.cases = []
        self._started = time.monotonic()

    def startTest(self, test):
        super().startTest(test)
        self._started = time.monotonic()

    def addSuccess(self, test):
        super().addSuccess(test)
        self._note(test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._note(test, "skipped", reason)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._note(test, "failure", self.failures[-1][1])

    def addError(self, test, err):
        super().addError(test, err)
        self._note(test, "error", self.errors[-1][1])

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._note(subtest, "failure", self._exc_info_to_string(err, subtest))

    def _note(self, test, outcome=None, message=""):
        # "tests.a.ATest.test_b"; of a whole class that was skipped: "setUpClass (__main__.ATest)".
        group, _, name = test.id().rpartition(".")
        self.cases.append((group, name, time.monotonic() - self._started, outcome, message))


def junit(cases):
    """The JUnit document of (class, name, seconds, None | skipped | failure | error, message)."""
    suites = xml.etree.ElementTree.Element("testsuites")
    suite = xml.etree.ElementTree.SubElement(suites, "testsuite", tests=str(len(cases)))
    for group, name, seconds, outcome, message in cases:
        case = xml.etree.ElementTree.SubElement(
            suite, "testcase", classname=group, name=name, time=f"{seconds:.3f}")
        if outcome is not None:
            xml.etree.ElementTree.SubElement(case, outcome, message=_printable(message))
    return xml.etree.ElementTree.tostring(suites, encoding="unicode")


def _printable(text):
    """XML does not allow other control characters, not even escaped."""
    return "".join(letter if letter >= " " or letter in "\n\t" else "?" for letter in text)


class _Runner(unittest.TextTestRunner):
    resultclass = _Result

    def run(self, test):
        result = super().run(test)
        for group, name, _, outcome, reason in result.cases:
            if outcome == "skipped":
                self.stream.writeln(f"skipped: {group}.{name}: {reason}")
        if path := os.environ.get("XML_OUTPUT_FILE"):
            with open(path, "w", encoding="utf-8") as file:
                file.write(junit(result.cases))
        return result


def main(argv=None, **options):
    """unittest.main, with --speeds, and a report for Bazel where Bazel asks for one."""
    global _speeds_count
    arguments = list(sys.argv if argv is None else argv)
    _speeds_count = _SPEEDS in arguments
    kept = [argument for argument in arguments if argument != _SPEEDS]
    return unittest.main(testRunner=_Runner, argv=kept, **options)
