# SPDX-License-Identifier: Apache-2.0
"""A job whose tables are flushed: nothing that is at risk is older than the job was told."""

import json
import os
import time

from tests import report
from tests.process import cluster, program

_EXAMPLES = program.built("tests/process/examples_worker")
_EVERY_SECONDS, _WATCHED_SECONDS = 4, 60


class FlushTest(cluster.ProcessTest):
    def ages(self, *options):
        """Of the oldest update at risk, in seconds, from the second snapshot on; then all die."""
        run = self.start_run(2, 1, [_EXAMPLES, "--passes", 100_000], [
            "--store", os.path.join(self.folder, "store"), "--servers", 2, *options])
        address = run.await_line(r"scheduler at (\S+);").group(1)
        snapshots, ages, end = set(), [], time.monotonic() + _WATCHED_SECONDS
        while time.monotonic() < end:
            status = self.run_to_end("covey status", [
                cluster.COVEY, "status", "--scheduler", address, "-o", "json"])
            at_risk = json.loads("".join(status.lines("stdout")))["at_risk"]
            snapshots.add(at_risk["snapshot"])
            # The first one begins before it is known how long one takes.
            if len(snapshots - {""}) >= 2:
                ages.append(int(at_risk.get("age_ms", 0)) / 1000)
            self.assertFalse(at_risk.get("flush_is_behind", False), at_risk)
        run.kill()
        print(f"{options}: at most {max(ages):.2f} s at risk in {len(ages)} looks, "
              f"{len(snapshots) - 1} flushes", flush=True)
        return ages

    def test_no_update_at_risk_is_older_than_asked_for(self):
        ages = self.ages("--durability", f"flushed:{_EVERY_SECONDS}s")
        self.assertGreater(len(ages), 100)
        self.assertLessEqual(max(ages), _EVERY_SECONDS)
        # Otherwise hardly anything was at risk.
        self.assertGreater(max(ages), 0.5 * _EVERY_SECONDS)

    def test_snapshots_at_the_same_interval_keep_less(self):
        ages = self.ages("--snapshot-every", f"{_EVERY_SECONDS}s")
        self.assertGreater(max(ages), _EVERY_SECONDS)


if __name__ == "__main__":
    report.main()
