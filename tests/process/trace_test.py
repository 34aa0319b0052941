# SPDX-License-Identifier: Apache-2.0
"""`covey trace`: what all nodes do, on one time line, also where their clocks differ."""

import collections
import json
import os
import subprocess
import unittest

from tests import report
from tests.process import cluster
from tests.process import program

# How far the clocks of a server and of two workers are ahead in the test of clocks, in seconds.
_AHEAD = {"server-1": 5000, "worker-1": 300, "worker-3": 77777}


def _clocks_can_differ():
    """Whether a process may have a clock of its own here."""
    tried = subprocess.run(_with_clock(1, ["true"]), check=False, capture_output=True)
    return tried.returncode == 0


def _with_clock(ahead, command):
    return ["unshare", "--time", "--boottime", str(ahead), *command] if ahead else command


class _Cluster(cluster.Cluster):
    """One whose nodes may have clocks that are ahead: by name, in seconds."""

    def __init__(self, test, ahead):
        self._ahead = ahead
        super().__init__(test, servers=2, groups=2, workers=2)

    def start_server(self, rank):
        name = f"server-{rank}"
        self.servers[rank] = self._test.start(name, _with_clock(self._ahead.get(name), [
            *self.server_arguments(rank), *self._server_options]))


class TraceTest(cluster.ProcessTest):

    def start_job(self, ahead):
        """Two servers, and two groups of two workers that train until the end of the test."""
        running = _Cluster(self, ahead)
        for rank in range(4):
            name = f"worker-{rank}"
            self.start(name, _with_clock(ahead.get(name), [
                cluster.SYNTHETIC, "--tensors", 2, "--tensor-kib", 64, "--steps", 1000000,
                "--group-batch", 8, "--milliseconds-per-sample", 2]), running.environment(rank))
        running.await_status(lambda status: sum(
            int(node.get("progress", {}).get("step", 0)) > 5 for node in status["nodes"]) == 4,
            "four workers that train")
        return running

    def trace(self, running, *options):
        """Returns the run, and the file's content."""
        path = os.path.join(self.folder, "trace.json")
        run = self.run_to_end("covey trace", [cluster.COVEY, "trace", "--scheduler",
                                              running.address, *options, path])
        self.assertEqual(0, run.code, run)
        check = self.run_to_end("covey trace", [cluster.COVEY, "trace", "--check", path])
        self.assertEqual(0, check.code, check)
        with open(path, encoding="utf-8") as file:
            return run, json.load(file)

    def assert_tells_of_a_job(self, content):
        events = content["traceEvents"]
        names = {event["pid"]: event["args"]["name"] for event in events
                 if event["name"] == "process_name"}
        shown = sorted(name.split(" on ")[0] for name in names.values())
        self.assertEqual(["scheduler", "server-0", "server-1", "worker-0", "worker-1", "worker-2",
                          "worker-3"], shown)
        found = collections.defaultdict(set)
        for event in events:
            if event["ph"] in "Xb":
                found[names[event["pid"]].split("-")[0].split(" on ")[0]].add(event["name"])
        for role, spans in {
                "worker": ["step", "compute", "wait for synthetic/0", "group_slice",
                           "send push_request", "push", "tensor synthetic/0"],
                "server": ["push_request", "send push_reply", "replicate_request"],
                "scheduler": ["send heartbeat_reply"],
        }.items():
            for span in spans:
                self.assertIn(span, found[role])
        return names

    def delays(self, content):
        """(from, to) -> the shortest time from sending to handling, in milliseconds."""
        begins, shortest = {}, {}
        for event in content["traceEvents"]:
            if event["ph"] == "s":
                begins[event["id"]] = event
        for event in content["traceEvents"]:
            if event["ph"] == "f":
                begin = begins[event["id"]]
                pair = (begin["pid"], event["pid"])
                took = (event["ts"] - begin["ts"]) / 1000
                shortest[pair] = min(took, shortest.get(pair, took))
        return shortest

    def assert_clocks_agree(self, content):
        """By the messages themselves: had one clock an error of e against another, messages one way
        would seem to take e less, and at least one of them would arrive before it was sent, or
        those the other way all take e more."""
        delays = self.delays(content)
        both = [(pair, took) for pair, took in delays.items() if pair[::-1] in delays]
        self.assertGreaterEqual(len(both), 10, delays)
        for pair, took in both:
            self.assertGreaterEqual(took, 0, pair)
            self.assertLess(took, 1, pair)
        self.assertEqual(0, content["otherData"]["messages_backward"])

    def test_a_job_of_two_groups(self):
        running = self.start_job({})
        run, content = self.trace(running, "--duration", "20s", "--steps", 20)
        self.assert_tells_of_a_job(content)
        self.assert_clocks_agree(content)
        self.assertRegex("\n".join(run.lines("stdout")), r"clocks agree within [0-9.]+ ms \(")
        steps = collections.Counter(event["pid"] for event in content["traceEvents"]
                                    if event["name"] == "step")
        self.assertEqual(4, len(steps))
        self.assertGreaterEqual(min(steps.values()), 20, steps)

        # No node records between two traces, and the second has nothing of the first.
        _, second = self.trace(running, "--duration", "3s")
        self.assert_tells_of_a_job(second)
        self.assertLess(max(event.get("ts", 0) for event in second["traceEvents"]), 8e6)

    def test_refusals(self):
        running = cluster.Cluster(self)

        def refused(code, *words):
            run = self.run_to_end("covey trace", [cluster.COVEY, "trace", *words])
            self.assertEqual(code, run.code, run)
            return "\n".join(run.lines("stderr"))

        path = os.path.join(self.folder, "trace.json")
        asked = ["--scheduler", running.address]
        self.assertIn("choose from 1ms to 10m", refused(2, *asked, "--duration", "11m", path))
        self.assertIn("no scheduler given", refused(2, path))
        self.assertIn("no scheduler answers", refused(3, "--scheduler", "127.0.0.1:1", path))
        self.assertIn("/no/such", refused(1, *asked, "/no/such/folder/trace.json"))
        first = self.start("covey trace", [cluster.COVEY, "trace", *asked, "--duration", "60s",
                                           path])
        first.await_line("tracing for 1 s")
        self.assertIn("another one is under way", refused(1, *asked, path))
        # Ctrl-C ends it sooner, and what there is, is written.
        first.signal(2)
        self.assertEqual(0, first.exit_code(), first)
        self.assertTrue(os.path.exists(path))

    @unittest.skipUnless(_clocks_can_differ(), "processes cannot have clocks of their own here")
    def test_clocks_that_differ(self):
        running = self.start_job(_AHEAD)
        _, content = self.trace(running, "--duration", "4s")
        self.assert_tells_of_a_job(content)
        self.assert_clocks_agree(content)


if __name__ == "__main__":
    report.main()
