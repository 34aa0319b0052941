# SPDX-License-Identifier: Apache-2.0
"""Jobs that end, in order or by SIGKILL of all processes, and continue from a snapshot."""

import json
import os
import signal

from tests import report
from tests.process import cluster, program

_EXAMPLES = program.built("tests/process/examples_worker")
_RESUMED = r"resumes snapshot=(\S+)"
_COMPLETE = r"snapshot \d+ is complete"


class ResumeTest(cluster.ProcessTest):

    def setUp(self):
        super().setUp()
        self.store = os.path.join(self.folder, "store")

    def run_job(self, groups, workers, command, servers, *options):
        return self.start_run(groups, workers, command, [
            "--store", self.store, "--resume", "if-any", "--servers", servers, *options])

    def kill_all(self, run):
        """As a power cut does, once a snapshot of this run is complete."""
        run.await_line(_COMPLETE)
        run.kill()

    def ended(self, run):
        self.assertEqual(0, run.exit_code(120), run)
        return json.loads(run.lines("stdout")[-1])

    def snapshots(self):
        found = self.run_to_end("covey snapshot", [
            cluster.COVEY, "snapshot", "--store", self.store, "list", "-o", "json"])
        self.assertEqual(0, found.code, found)
        return json.loads("".join(found.lines("stdout")))

    def verify(self):
        self.assertEqual(0, self.run_to_end("covey snapshot", [
            cluster.COVEY, "snapshot", "--store", self.store, "verify"]).code)

    def count_examples(self, replicas, sizes):
        """Kills a job after each of the sizes (servers, groups, workers) but the last."""
        command = [_EXAMPLES, "--passes", 30, "--replicas", replicas]
        for round_, (servers, groups, workers) in enumerate(sizes):
            run = self.run_job(groups, workers, command, servers, "--snapshot-every", "1s")
            if round_ > 0:
                run.await_line(_RESUMED)
            if round_ + 1 < len(sizes):
                self.kill_all(run)
                self.verify()
        self.assertEqual(0, self.ended(run)["wrong"])

    def test_every_example_counts_once_with_one_replica(self):
        self.count_examples(1, [(1, 2, 1), (3, 1, 2), (2, 1, 1)])

    def test_every_example_counts_once_with_two_replicas(self):
        self.count_examples(2, [(3, 1, 1), (2, 2, 1), (5, 1, 2)])

    def expect_equal_bits(self, groups, workers, wire, *options):
        """Of an undisturbed run, and of one that was killed; on other numbers of servers."""
        command = [cluster.FASHION_MNIST, "--contract", "bsp", "--fixed-split", "--hidden", 64,
                   "--epochs", 14, "--wire", wire]
        files = [os.path.join(self.folder, name) for name in ("a.safetensors", "b.safetensors")]
        undisturbed = self.result_of(groups, workers, command, [
            "--servers", 2, "--store", self.store + "-2", "--export", files[0], *options])
        self.kill_all(self.run_job(groups, workers, command, 1, "--snapshot-every", "1s", *options))
        run = self.run_job(groups, workers, command, 3, "--export", files[1])
        run.await_line(_RESUMED)
        resumed = self.ended(run)
        self.assertEqual(undisturbed["test_accuracy"], resumed["test_accuracy"])
        contents = []
        for file in files:
            with open(file, "rb") as opened:
                contents.append(opened.read())
        self.assertEqual(contents[0], contents[1])

    def test_a_killed_bsp_run_ends_with_the_bits_of_an_undisturbed_one(self):
        self.expect_equal_bits(2, 1, "float32")

    def test_so_does_one_with_error_feedback(self):
        self.expect_equal_bits(2, 2, "int8", "--feedback-flush-steps", 20)

    def test_a_job_that_is_stopped_is_saved(self):
        command = [_EXAMPLES, "--passes", 30]
        run = self.run_job(2, 1, command, 2)
        address = run.await_line(r"scheduler at (\S+);").group(1)
        run.await_line(r"group_ready", count=2)
        created = self.run_to_end("covey snapshot", [
            cluster.COVEY, "snapshot", "create", "--scheduler", address, "-o", "json"])
        self.assertEqual(0, created.code, created)
        run.signal(signal.SIGTERM)
        self.assertEqual(1, run.exit_code(60), run)
        first, last = self.snapshots()
        run.await_line(f"newest snapshot: .*/{last['name']};")
        self.assertEqual(json.loads("".join(created.lines("stdout")))["name"], first["name"])
        self.assertTrue(first["complete"] and last["complete"], [first, last])
        self.assertLess(first["step"], last["step"])
        run = self.run_job(1, 2, command, 3)
        self.assertEqual(last["name"], run.await_line(_RESUMED).group(1))
        self.assertEqual(0, self.ended(run)["wrong"])

    def test_services_that_are_stopped_together_save_the_job(self):
        options = ["--store", self.store]
        running = cluster.Cluster(self, servers=2, scheduler_options=options, server_options=options)
        self.assertEqual(1, running.count())
        processes = [running.scheduler, *running.servers]
        for process in processes:
            process.signal(signal.SIGTERM)
        for process in processes:
            self.assertEqual(0, process.exit_code(), process)
        self.assertTrue(self.snapshots()[0]["complete"])
        running = cluster.Cluster(
            self, scheduler_options=[*options, "--resume", "1"], server_options=options)
        self.assertEqual(2, running.count())

    def test_without_a_store_nothing_can_be_saved_or_resumed(self):
        running = cluster.Cluster(self)
        created = self.run_to_end("covey snapshot", [
            cluster.COVEY, "snapshot", "create", "--scheduler", running.address])
        self.assertEqual(1, created.code)
        self.assertIn("this job has no store", created.lines("stderr")[-1])
        run = self.start_run(1, 1, [_EXAMPLES], ["--store", self.store, "--resume", "latest"])
        self.assertEqual(1, run.exit_code(), run)
        run.await_line(r"there is no complete snapshot")


if __name__ == "__main__":
    report.main()
