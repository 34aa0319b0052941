"""tests/run must not say "0 failed" when something failed, was not built, or did not run."""

import unittest

from tests import tally


def _configured(label):
    return {"id": {"targetConfigured": {"label": label}}, "configured": {"testSize": "SMALL"}}


def _tested(label, status, report=None):
    outputs = [{"name": "test.xml", "uri": report}] if report else []
    return [
        {"id": {"testResult": {"label": label}}, "testResult": {"testActionOutput": outputs}},
        {"id": {"testSummary": {"label": label}}, "testSummary": {"overallStatus": status}},
    ]


_REPORTS = {
    "three": '<testsuites><testsuite><testcase name="a"/><testcase name="b" status="run"/>'
    '<testcase name="c"/><testcase name="off" status="notrun"/></testsuite></testsuites>',
    "one_bad": '<testsuites><testcase name="a"/><testcase classname="S" name="b"><failure/>'
    '</testcase><testcase name="c"><skipped/></testcase></testsuites>',
}


class TallyTest(unittest.TestCase):
    def tally(self, events, bazel_status=0):
        return tally.tally(events, bazel_status, _REPORTS.__getitem__)

    def test_counts_cases(self):
        events = [_configured("//a:t"), *_tested("//a:t", "PASSED", "three")]
        self.assertEqual((3, []), self.tally(events))

    def test_counts_a_target_without_a_report_once(self):
        self.assertEqual((1, []), self.tally(_tested("//a:t", "PASSED")))

    def test_names_the_case_that_failed(self):
        self.assertEqual((1, ["//a:t S.b"]), self.tally(_tested("//a:t", "FAILED", "one_bad"), 3))

    def test_a_crash_after_good_cases_is_a_failure(self):
        events = _tested("//a:t", "TIMEOUT", "three")
        self.assertEqual((3, ["//a:t TIMEOUT"]), self.tally(events, 3))

    def test_a_test_that_was_not_built_is_a_failure(self):
        self.assertEqual((0, ["//a:t NOT BUILT"]), self.tally([_configured("//a:t")], 1))

    def test_a_library_that_was_not_built_is_a_failure(self):
        broken = {"id": {"targetCompleted": {"label": "//a:lib"}}, "completed": {}}
        events = [broken, *_tested("//a:t", "PASSED")]
        self.assertEqual((1, ["//a:lib NOT BUILT"]), self.tally(events, 1))

    def test_a_test_that_is_not_for_this_configuration_is_neither(self):
        identity = {"targetCompleted": {"label": "//a:gpu"}}
        skipped = {"id": identity, "aborted": {"reason": "SKIPPED"}}
        events = [_configured("//a:gpu"), skipped, *_tested("//a:t", "PASSED")]
        self.assertEqual((1, []), self.tally(events))

    def test_a_broken_build_is_a_failure(self):
        self.assertEqual(1, len(self.tally(_tested("//a:t", "PASSED"), 1)[1]))


if __name__ == "__main__":
    unittest.main()
