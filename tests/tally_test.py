# SPDX-License-Identifier: Apache-2.0
"""tests/run must not say "0 failed" when something failed, was not built, or did not run."""

import unittest

from tests import report, tally


def _configured(label):
    return {"id": {"targetConfigured": {"label": label}}, "configured": {"testSize": "SMALL"}}


def _attempt(label, document, attempt=1, shard=1, milliseconds=0):
    return {
        "id": {"testResult": {"label": label, "run": 1, "shard": shard, "attempt": attempt}},
        "testResult": {
            "testActionOutput": [{"name": "test.xml", "uri": document}],
            "testAttemptDurationMillis": str(milliseconds),
        },
    }


def _tested(label, status, document=None):
    summary = {"id": {"testSummary": {"label": label}}, "testSummary": {"overallStatus": status}}
    return [*([_attempt(label, document)] if document else []), summary]


_REPORTS = {
    "three": '<testsuites><testsuite><testcase name="a"/><testcase name="b" status="run"/>'
    '<testcase name="c"/><testcase name="off" status="notrun"/></testsuite></testsuites>',
    "one_bad": '<testsuites><testcase name="a"/><testcase classname="S" name="b"><failure/>'
    '</testcase><testcase classname="S" name="c"><skipped message="a.cc:7&#x0A;no GPU"/></testcase>'
    "</testsuites>",
    "all_skipped": '<testsuites><testcase classname="S" name="a" status="run" result="skipped">'
    '<skipped message="no etcd"/></testcase><testcase classname="S" name="b"><skipped/></testcase>'
    "</testsuites>",
    "repeated": '<testsuites><testcase name="a"/><testcase classname="S" name="b"/>'
    '<testcase classname="S" name="c"><skipped message="a.cc:7&#x0A;no GPU"/></testcase>'
    "</testsuites>",
    "all_disabled": '<testsuites><testcase classname="S" name="a" status="notrun"/></testsuites>',
    "whole_target": '<testsuites><testsuite><testcase name="a/b_test"/></testsuite></testsuites>',
    "python": report.junit(
        [
            ("__main__.T", "test_a", 0.5, None, ""),
            ("__main__.T", "test_b", 0, "skipped", "no namespaces"),
            ("__main__.T", "test_c", 0, "failure", "1 != 2\x1b"),
        ]
    ),
}


class TallyTest(unittest.TestCase):
    def tally(self, events, bazel_status=0):
        """The counts, without the skipped and the flaky ones."""
        self.result = tally.tally(events, bazel_status, _REPORTS.__getitem__)
        return self.result.passed, self.result.failed

    def test_counts_cases(self):
        events = [_configured("//a:t"), *_tested("//a:t", "PASSED", "three")]
        self.assertEqual((3, []), self.tally(events))
        self.assertEqual(["3 passed, 0 failed, 0 skipped"], self.result.lines())

    def test_counts_a_target_without_a_report_once(self):
        self.assertEqual((1, []), self.tally(_tested("//a:t", "PASSED")))
        self.assertEqual((1, []), self.tally(_tested("//a:t", "PASSED", "whole_target")))

    def test_names_the_case_that_failed(self):
        self.assertEqual((1, ["//a:t S.b"]), self.tally(_tested("//a:t", "FAILED", "one_bad"), 3))

    def test_names_what_was_skipped_and_why(self):
        self.tally(_tested("//a:t", "FAILED", "one_bad"), 3)
        self.assertEqual(
            ["SKIPPED //a:t S.c: no GPU", "FAILED //a:t S.b", "1 passed, 1 failed, 1 skipped"],
            self.result.lines(),
        )

    def test_a_target_all_of_whose_cases_were_skipped_has_not_passed(self):
        self.assertEqual((0, []), self.tally(_tested("//a:t", "PASSED", "all_skipped")))
        self.assertEqual(
            ["//a:t S.a: no etcd", "//a:t S.b: no reason given"], self.result.skipped
        )

    def test_counts_what_a_python_file_reports(self):
        self.assertEqual(
            (1, ["//a:t __main__.T.test_c"]), self.tally(_tested("//a:t", "FAILED", "python"), 3)
        )
        self.assertEqual(["//a:t __main__.T.test_b: no namespaces"], self.result.skipped)

    def test_what_passed_only_when_it_was_repeated_has_failed(self):
        events = [_attempt("//a:t", "one_bad", 1), _attempt("//a:t", "repeated", 2)]
        self.assertEqual((1, []), self.tally([*events, *_tested("//a:t", "FLAKY")]))
        self.assertEqual(
            ["SKIPPED //a:t S.c: no GPU", "FLAKY //a:t S.b: passed only when it was repeated",
             "1 passed, 1 failed, 1 skipped"], self.result.lines())
        self.assertFalse(self.result.good())

    def test_a_flaky_target_that_names_no_case_has_failed(self):
        events = [_attempt("//a:t", "whole_target", 1), _attempt("//a:t", "whole_target", 2)]
        self.tally([*events, *_tested("//a:t", "FLAKY")])
        self.assertEqual(1, len(self.result.flaky))
        self.assertFalse(self.result.good())

    def test_a_target_all_of_whose_cases_are_disabled_is_skipped(self):
        self.assertEqual((0, []), self.tally(_tested("//a:t", "PASSED", "all_disabled")))
        self.assertEqual(["//a:t: all of its tests are disabled"], self.result.skipped)
        self.assertFalse(self.result.good())

    def test_shards_are_counted_together(self):
        events = [_attempt("//a:t", "three", shard=1), _attempt("//a:t", "three", shard=2)]
        self.assertEqual((6, []), self.tally([*events, *_tested("//a:t", "PASSED")]))

    def test_names_the_slowest_targets_first(self):
        events = [
            *(_attempt("//a:shards", "three", shard=shard, milliseconds=2000) for shard in (1, 2)),
            _attempt("//a:slow", "three", milliseconds=3000),
            _attempt("//a:quick", "three", milliseconds=100),
        ]
        self.tally([*events, *_tested("//a:shards", "PASSED"), *_tested("//a:slow", "PASSED")])
        self.assertEqual(["TOOK 4 s //a:shards", "TOOK 3 s //a:slow"], self.result.lines()[:2])
        self.assertNotIn("quick", "".join(self.result.lines()))

    def test_a_crash_after_good_cases_is_a_failure(self):
        events = _tested("//a:t", "TIMEOUT", "three")
        self.assertEqual((3, ["//a:t TIMEOUT"]), self.tally(events, 3))

    def test_a_test_that_was_not_built_is_a_failure(self):
        self.assertEqual((0, ["//a:t NOT BUILT"]), self.tally([_configured("//a:t")], 1))

    def test_a_library_that_was_not_built_is_a_failure(self):
        broken = {"id": {"targetCompleted": {"label": "//a:lib"}}, "completed": {}}
        events = [broken, *_tested("//a:t", "PASSED")]
        self.assertEqual((1, ["//a:lib NOT BUILT"]), self.tally(events, 1))

    def test_a_test_that_is_not_for_this_configuration_is_skipped(self):
        left_out = [
            {"id": {"targetCompleted": {"label": label}}, "aborted": {"reason": "SKIPPED"}}
            for label in ("//a:gpu", "//a:library")
        ]
        events = [_configured("//a:gpu"), *left_out, *_tested("//a:t", "PASSED")]
        self.assertEqual((1, []), self.tally(events))
        self.assertEqual(["//a:gpu: not for this configuration"], self.result.skipped)

    def test_a_broken_build_is_a_failure(self):
        self.assertEqual(1, len(self.tally(_tested("//a:t", "PASSED"), 1)[1]))


if __name__ == "__main__":
    report.main()
