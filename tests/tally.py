# SPDX-License-Identifier: Apache-2.0
"""Counts the test cases of one `bazel test`, from the file that --build_event_json_file wrote.

Names the slowest targets, every skipped test with the reason, and everything that failed; also what
failed and passed when it was repeated, which counts as failed. A target with tests, none of which
ran, is skipped. The last line is "N passed, N failed, N skipped". Exits 0 only if something passed
and nothing failed.
"""

import argparse
import dataclasses
import json
import re
import sys
import urllib.parse
import xml.etree.ElementTree


# The number of slowest targets to show.
_SLOWEST = 10


@dataclasses.dataclass
class Tally:
    passed: int = 0
    # Failed; skipped; failed, and passed when repeated: one line each.
    failed: list = dataclasses.field(default_factory=list)
    skipped: list = dataclasses.field(default_factory=list)
    flaky: list = dataclasses.field(default_factory=list)
    # For each target, the sum over all its attempts and shards.
    seconds: dict = dataclasses.field(default_factory=dict)

    def lines(self):
        slowest = sorted(self.seconds.items(), key=lambda entry: -entry[1])[:_SLOWEST]
        return [
            *(f"TOOK {seconds:.0f} s {label}" for label, seconds in slowest if seconds >= 1),
            *(f"SKIPPED {what}" for what in self.skipped),
            *(f"FLAKY {what}" for what in self.flaky),
            *(f"FAILED {what}" for what in self.failed),
            f"{self.passed} passed, {len(self.failed) + len(self.flaky)} failed, "
            f"{len(self.skipped)} skipped",
        ]

    def good(self):
        """Whether something passed, and nothing failed."""
        return self.passed > 0 and not self.failed and not self.flaky


def tally(events, bazel_status, read):
    """The Tally of decoded build events.

    bazel_status: exit code of Bazel, which also fails when no test does.
    read: a function from the address of a test.xml to its text.
    """
    targets, broken, incompatible, reports, statuses = set(), set(), set(), {}, {}
    result = Tally()
    for event in events:
        identity = event.get("id", {})
        if "targetConfigured" in identity and "testSize" in event.get("configured", {}):
            targets.add(identity["targetConfigured"]["label"])
        elif "targetCompleted" in identity:
            label = identity["targetCompleted"]["label"]
            if event.get("aborted", {}).get("reason") == "SKIPPED":
                incompatible.add(label)
            elif not event.get("completed", {}).get("success"):
                broken.add(label)
        elif "testResult" in identity:
            place = identity["testResult"]
            told = event.get("testResult", {})
            label, attempt = place["label"], place.get("attempt", 1)
            seconds = int(told.get("testAttemptDurationMillis", 0)) / 1000
            result.seconds[label] = result.seconds.get(label, 0) + seconds
            for output in told.get("testActionOutput", []):
                if output["name"] == "test.xml":
                    shard = (place.get("run", 1), place.get("shard", 1))
                    attempts = reports.setdefault(label, {}).setdefault(shard, {})
                    attempts[attempt] = output["uri"]
        elif "testSummary" in identity:
            label = identity["testSummary"]["label"]
            statuses[label] = event.get("testSummary", {}).get("overallStatus", "UNKNOWN")

    result.skipped = [f"{label}: not for this configuration"
                      for label in sorted(targets & incompatible)]
    for label in sorted((targets - incompatible) | broken | set(statuses)):
        status = statuses.get(label, "NOT BUILT")
        # Of each run and shard the last attempt counts, and those before it are repeated ones.
        last, before = [], []
        for attempts in reports.get(label, {}).values():
            texts = [read(address) for _, address in sorted(attempts.items())]
            last.append(texts[-1])
            before += texts[:-1]
        cases = _cases(last)
        result.skipped += [f"{label} {case}" for case in cases.skipped]
        if status == "FLAKY":
            flaky = list(dict.fromkeys(_cases(before).failed))
            result.passed += len([name for name in cases.passed if name not in flaky])
            result.flaky += [f"{label} {case}: passed only when it was repeated"
                             for case in flaky or ["(no case is named)"]]
            continue
        result.passed += len(cases.passed)
        if status != "PASSED":
            result.failed += [f"{label} {case}" for case in cases.failed] or [f"{label} {status}"]
        elif cases.disabled and not cases.passed and not cases.skipped:
            result.skipped.append(f"{label}: all of its tests are disabled")
        elif not cases.passed and not cases.skipped:
            # A target whose report names no case counts as one case.
            result.passed += 1
    if bazel_status != 0 and not result.failed and not result.flaky:
        result.failed.append("the build; Bazel's message stands above")
    return result


@dataclasses.dataclass
class _Cases:
    """The cases in JUnit reports, by their names; those skipped as "name: reason"."""

    passed: list = dataclasses.field(default_factory=list)
    failed: list = dataclasses.field(default_factory=list)
    skipped: list = dataclasses.field(default_factory=list)
    disabled: list = dataclasses.field(default_factory=list)


def _cases(texts):
    cases = _Cases()
    for text in texts:
        for case in xml.etree.ElementTree.fromstring(text).iter("testcase"):
            name = ".".join(filter(None, (case.get("classname"), case.get("name"))))
            left_out = case.find("skipped")
            if case.find("failure") is not None or case.find("error") is not None:
                if case.get("classname"):  # absent where the case is the whole target
                    cases.failed.append(name)
            elif left_out is not None:
                cases.skipped.append(f"{name}: {_reason(left_out.get('message') or '')}")
            elif case.get("status", "run") == "run":
                cases.passed.append(name)
            else:
                cases.disabled.append(name)
    return cases


def _reason(message):
    """The message in one line, without the file and line that GoogleTest puts first."""
    lines = message.splitlines()
    if len(lines) > 1 and re.search(r":\d+$", lines[0]):
        lines = lines[1:]
    return " ".join(lines) or "no reason given"


def _read(address):
    with open(urllib.parse.unquote(urllib.parse.urlparse(address).path), encoding="utf-8") as file:
        return file.read()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bazel-status", type=int, required=True)
    parser.add_argument("events")
    arguments = parser.parse_args()
    with open(arguments.events, encoding="utf-8") as lines:
        result = tally(map(json.loads, lines), arguments.bazel_status, _read)
    print("\n".join(result.lines()))
    return 0 if result.good() else 1


if __name__ == "__main__":
    sys.exit(main())
