# SPDX-License-Identifier: Apache-2.0
"""Figures of tests: printed as they are measured, and saved to a file on request."""

import argparse
import datetime
import json
import statistics
import sys

from tests import report


class Figures:
    """The figures of one run; `defaults`: options of the program, with their values in a test."""

    def __init__(self, **defaults):
        self.options = argparse.Namespace(**defaults)
        self._entries = {}

    def add(self, name, values, unit="s"):
        ordered = sorted(values)
        self.note(name, unit=unit, n=len(ordered), p50=round(statistics.median(ordered), 4),
                  p99=round(ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))], 4),
                  max=round(ordered[-1], 4))

    def note(self, name, **entry):
        self._entries[name] = entry
        print(f"{name}: {json.dumps(entry)}", flush=True)

    def main(self):
        """Replaces unittest.main: reads the options, and --measure FILE."""
        arguments = argparse.ArgumentParser()
        arguments.add_argument("--measure", metavar="FILE", default=None)
        for name, value in vars(self.options).items():
            arguments.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
        parsed, rest = arguments.parse_known_args()
        vars(self.options).update(vars(parsed))
        run = report.main(argv=[sys.argv[0], *rest], exit=False)
        if parsed.measure:
            with open(parsed.measure, "w", encoding="utf-8") as file:
                json.dump({"options": vars(parsed), "figures": self._entries}, file, indent=1)
        sys.exit(not run.result.wasSuccessful())


def seconds_of(event):
    """The time at which a log line was written, in seconds since 1970."""
    return datetime.datetime.fromisoformat(event["time"]).timestamp()
