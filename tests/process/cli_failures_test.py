# SPDX-License-Identifier: Apache-2.0
"""`covey run` whose processes die: restarts, runs that continue, and the messages."""

import json
import os
import re
import signal

from tests import report
from tests.process import cluster

# A few seconds of steps, long enough for deaths and their consequences.
_TRAINING = ["--milliseconds-per-sample", 10, "--group-batch", 4, "--tensors", 2, "--tensor-kib", 16]


class CliFailuresTest(cluster.ProcessTest):

    def train(self, *options, servers=2, groups=2, workers=2, steps=150):
        return self.start_run(groups, workers, [cluster.SYNTHETIC, *_TRAINING, "--steps", steps],
                              ["--servers", servers, *options])

    def kill(self, run, name, count=1):
        """Kills the `count`-th process of this name from outside, once training has begun."""
        if name == "scheduler":
            pids = [pid for pid, command in run.descendants().items()
                    if command.startswith(cluster.SCHEDULER)]
            self.assertEqual(1, len(pids), run)
            pid = pids[0]
        else:
            pid = int(run.await_line(rf"{name} \(node \d+, pid (\d+) .*registered",
                                     count=count).group(1))
        os.kill(pid, signal.SIGKILL)

    def ended_well(self, run):
        """Returns the result, once the run has ended and nothing of it is left."""
        self.assertEqual(0, run.exit_code(240), run)
        self.assertEqual({}, run.descendants(), "left behind")
        return json.loads(run.lines("stdout")[-1])

    def await_training(self, run):
        run.await_line(r"group 1 step \d+.*group 2 step \d+")

    def test_whoever_is_killed_is_started_again(self):
        run = self.train("--on-failure", "restart", steps=300)
        self.await_training(run)
        self.kill(run, "server-0")
        run.await_line("restarted server-0")
        self.kill(run, "worker-1")
        run.await_line("restarted worker-1")
        run.await_line(r"worker-1 \(node \d+, pid \d+ .*registered", count=2)
        losses = self.ended_well(run)["losses"]
        self.assertEqual((2, 0), (losses["died"], losses["shards_lost"]), run)
        self.assertIn("worker-1 restarted", "\n".join(run.lines("stderr")))

    def test_the_only_worker_is_started_again_though_nobody_is_left(self):
        run = self.train("--on-failure", "restart", "--kill", "worker-0@200ms", groups=1, workers=1)
        self.assertEqual(1, self.ended_well(run)["losses"]["died"])

    def test_who_ends_again_and_again_is_given_up(self):
        script = os.path.join(self.folder, "fails")
        with open(script, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\nexit 3\n")
        os.chmod(script, 0o755)
        run = self.start_run(1, 1, [script], ["--on-failure", "restart"])
        self.assertEqual(1, run.exit_code(), run)
        self.assertEqual(4, run.count("restarted worker-0"))
        self.assertEqual(1, run.count("worker-0 has ended 5 times within 10s of its start"))
        self.assertRegex(run.lines("stderr")[-1], r"worker-0 \(pid \d+\) exited with code 3$")

    def test_a_scheduler_that_is_killed_is_started_again(self):
        logs = os.path.join(self.folder, "logs")
        run = self.train("--log-dir", logs, steps=300)
        self.await_training(run)
        self.kill(run, "scheduler")
        run.await_line(r"scheduler \(pid \d+\) killed by signal 9 \(Killed\); training continues")
        run.await_line("restarted scheduler")
        losses = self.ended_well(run)["losses"]
        self.assertEqual((1, 0, 0), (losses["died"], losses["recoveries"], losses["shards_lost"]), run)
        # No node had to register again, and the log has both lives.
        self.assertEqual(1, run.count(r"worker-1 \(node \d+, pid \d+ .*registered"))
        with open(os.path.join(logs, "scheduler.log"), encoding="utf-8") as file:
            self.assertEqual(2, file.read().count("listening on"))

    def test_a_run_that_is_to_stop_ends_with_its_scheduler(self):
        run = self.train("--on-failure", "stop", "--grace", "1s", steps=1000)
        self.await_training(run)
        self.kill(run, "scheduler")
        self.assertEqual(1, run.exit_code(), run)
        self.assertEqual({}, run.descendants(), "left behind")
        self.assertRegex(run.lines("stderr")[-1],
                         r"^covey run: scheduler \(pid \d+\) killed by signal 9 \(Killed\)$")

    def test_faults_of_a_file(self):
        faults = os.path.join(self.folder, "faults")
        with open(faults, "w", encoding="utf-8") as file:
            file.write("- {at: 200ms, kind: kill, target: server-0, for: 500ms}\n"
                       "- {at: 400ms, kind: restart, target: worker-1}\n"
                       "- {at: 600ms, kind: stop, target: worker-2, for: 300ms}\n"
                       "- {at: 800ms, kind: kill, target: worker-3}\n"
                       "- {at: 1s, kind: restart, target: scheduler}\n")
        run = self.train("--faults", faults, steps=300)
        losses = self.ended_well(run)["losses"]
        errors = "\n".join(run.lines("stderr"))
        for what in ["restarted server-0", "restarted worker-1", "worker-2 stopped",
                     "worker-2 resumed", "killing worker-3: as planned\n", "restarted scheduler"]:
            self.assertIn(what, errors)
        self.assertNotIn("restarted worker-3", errors)
        self.assertEqual((4, 0), (losses["died"], losses["shards_lost"]), run)

    def test_a_worker_that_stands_still_for_ever_does_not_keep_the_run(self):
        faults = os.path.join(self.folder, "faults")
        with open(faults, "w", encoding="utf-8") as file:
            file.write("- {at: 100ms, kind: stop, target: worker-3}\n")
        run = self.train("--faults", faults)
        losses = self.ended_well(run)["losses"]
        self.assertEqual((1, 1), (losses["died"], losses["recoveries"]), run)

    def test_deaths_shortly_before_the_end_are_told_and_the_end_is_quiet(self):
        # The run ends a second or two after the deaths.
        run = self.train("--kill", "server-0@100ms,worker-1@100ms", servers=3, steps=100)
        losses = self.ended_well(run)["losses"]
        self.assertEqual((2, 1), (losses["died"], losses["recoveries"]), run)
        self.assertGreater(losses["failovers"], 0, run)
        over = max(number for number, line in enumerate(run.lines("stderr"))
                   if re.search("worker-. .*left: done", line))
        self.assertEqual([], [line for line in run.lines("stderr")[over:]
                              if line.startswith(("server-", "scheduler "))
                              and not re.search("worker-. .*left: done", line)])


if __name__ == "__main__":
    report.main()
