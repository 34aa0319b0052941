"""Counts the test cases of one `bazel test`, from the file that --build_event_json_file wrote.

Names every target that failed; the last line is "N passed, N failed". Exits 0 only if something
passed and nothing failed.
"""

import argparse
import json
import sys
import urllib.parse
import xml.etree.ElementTree


def tally(events, bazel_status, read):
    """(number passed, [what failed]).

    events: decoded build events.
    bazel_status: exit code of Bazel, which also fails when no test does.
    read: a function from the address of a test.xml to its text.
    """
    targets, incompatible, reports, statuses = set(), set(), {}, {}
    for event in events:
        identity = event.get("id", {})
        if "targetConfigured" in identity and "testSize" in event.get("configured", {}):
            targets.add(identity["targetConfigured"]["label"])
        elif "targetCompleted" in identity:
            label = identity["targetCompleted"]["label"]
            if event.get("aborted", {}).get("reason") == "SKIPPED":
                incompatible.add(label)
            elif not event.get("completed", {}).get("success"):
                targets.add(label)
        elif "testResult" in identity:
            for output in event.get("testResult", {}).get("testActionOutput", []):
                if output["name"] == "test.xml":
                    reports.setdefault(identity["testResult"]["label"], []).append(output["uri"])
        elif "testSummary" in identity:
            label = identity["testSummary"]["label"]
            statuses[label] = event.get("testSummary", {}).get("overallStatus", "UNKNOWN")

    passed, failed = 0, []
    for label in sorted((targets - incompatible) | set(statuses)):
        status = statuses.get(label, "NOT BUILT")
        good, bad = _cases(map(read, reports.get(label, [])))
        if status in ("PASSED", "FLAKY"):
            passed += max(1, good)
        else:
            passed += good
            failed += [f"{label} {case}" for case in bad] or [f"{label} {status}"]
    if bazel_status != 0 and not failed:
        failed.append("the build; Bazel's message stands above")
    return passed, failed


def _cases(texts):
    """(number passed, [names that failed]) in JUnit reports; skipped ones count as neither."""
    good, bad = 0, []
    for text in texts:
        for case in xml.etree.ElementTree.fromstring(text).iter("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                if case.get("classname"):  # absent where the case is the whole target
                    bad.append(f"{case.get('classname')}.{case.get('name')}")
            elif case.find("skipped") is None and case.get("status", "run") == "run":
                good += 1
    return good, bad


def _read(address):
    with open(urllib.parse.unquote(urllib.parse.urlparse(address).path), encoding="utf-8") as file:
        return file.read()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bazel-status", type=int, required=True)
    parser.add_argument("events")
    arguments = parser.parse_args()
    with open(arguments.events, encoding="utf-8") as lines:
        passed, failed = tally(map(json.loads, lines), arguments.bazel_status, _read)
    for what in failed:
        print(f"FAILED {what}")
    print(f"{passed} passed, {len(failed)} failed")
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
