# SPDX-License-Identifier: Apache-2.0
"""`--durability`: what a job may lose, what it would lose at the moment, and what it refuses."""

import json
import os

from tests import report
from tests.process import cluster, program

_EXAMPLES = program.built("tests/process/examples_worker")


class DurabilityTest(cluster.ProcessTest):

    def setUp(self):
        super().setUp()
        self.store = os.path.join(self.folder, "store")

    def covey(self, *words):
        run = self.run_to_end("covey", [cluster.COVEY, *words])
        self.assertEqual(0, run.code, run)
        return json.loads("".join(run.lines("stdout")))

    def complete(self):
        if not os.path.isdir(self.store):  # not yet
            return []
        return [found["name"] for found in
                self.covey("snapshot", "--store", self.store, "list", "-o", "json") if found["complete"]]

    def newest(self):
        return (self.complete() or [""])[-1]

    def newest_with_logs(self):
        for name in reversed(self.complete()):
            run = self.run_to_end("covey snapshot", [
                cluster.COVEY, "snapshot", "--store", self.store, "show", name, "-o", "json"])
            if run.code != 0:  # deleted in the meantime: the job keeps the newest only
                continue
            tables = json.loads("".join(run.lines("stdout")))["tables"]
            if sum(table["log_bytes"] for table in tables) > 0:
                return name
        return ""

    def test_a_killed_job_loses_what_it_said(self):
        run = self.start_run(2, 1, [_EXAMPLES, "--passes", 40], [
            "--store", self.store, "--durability", "flushed:2s", "--servers", 2])
        address = run.await_line(r"scheduler at (\S+);").group(1)
        run.await_line(r"; at risk: [\d,]+ updates? of the last", count=2)
        at_risk = self.covey("status", "--scheduler", address, "-o", "json")["at_risk"]
        run.kill()
        self.assertEqual("flushed:2s", at_risk["durability"])
        self.assertLess(int(at_risk["age_ms"]), 10_000, "2 s, and what a flush takes on a busy machine")
        newest = self.newest()
        self.assertNotEqual("", newest)
        self.assertLessEqual(at_risk["snapshot"], newest)
        run = self.start_run(1, 1, [_EXAMPLES, "--passes", 40], [
            "--store", self.store, "--resume", "latest", "--durability", "flushed:2s"])
        run.await_line(f"tables? continues? {newest}; updates after it are gone")
        self.assertEqual(0, run.exit_code(120), run)
        self.assertEqual(0, json.loads(run.lines("stdout")[-1])["wrong"])

    def test_a_killed_job_continues_with_the_updates_that_flushes_logged(self):
        command = [_EXAMPLES, "--examples", 9600, "--batch", 960, "--passes", 2, "--wire", "int8", "--pause", "1s"]
        options = ["--store", self.store, "--durability", "flushed:1s", "--snapshots-kept", 4]
        run = self.start_run(1, 1, command, [*options, "--servers", 2])
        program.await_true(self.newest_with_logs, f"no flush has logged updates: {run}")
        run.kill()
        logged = self.newest_with_logs()
        self.assertEqual(0, self.run_to_end("covey snapshot", [
            cluster.COVEY, "snapshot", "--store", self.store, "verify"]).code)
        run = self.start_run(1, 1, command, [*options, "--resume", logged, "--servers", 3])
        run.await_line(f"resumes snapshot={logged}")
        self.assertEqual(0, run.exit_code(120), run)
        self.assertEqual(0, json.loads(run.lines("stdout")[-1])["wrong"])

    def test_what_cannot_be_kept_is_refused(self):
        for options, reason in [
                (["--durability", "flushed:2s"], "durability flushed:2s needs a store"),
                (["--durability", "replicated"], "durability replicated needs at least two servers"),
                (["--durability", "disk"], "--durability is 'disk'; choose memory, replicated, or flushed"),
        ]:
            run = self.start_run(1, 1, [_EXAMPLES], options)
            self.assertEqual(2, run.exit_code(), run)
            self.assertIn(reason, run.lines("stderr")[-1])
        run = self.start_run(1, 1, [_EXAMPLES, "--replicas", 1], [
            "--servers", 2, "--durability", "replicated"])
        run.await_line("asks for one replica, and the job's durability is replicated")
        self.assertEqual(1, run.exit_code(), run)

    def test_tables_of_a_snapshot_must_keep_it_too(self):
        command = [_EXAMPLES, "--replicas", 1, "--passes", 1]
        self.result_of(1, 1, command, ["--store", self.store])
        run = self.start_run(1, 1, command, [
            "--store", self.store, "--resume", "latest", "--servers", 2, "--durability", "replicated"])
        run.await_line("asks for one replica, and the job's durability is replicated")
        self.assertEqual(1, run.exit_code(), run)


if __name__ == "__main__":
    report.main()
