# SPDX-License-Identifier: Apache-2.0
"""Processes that are killed or interrupted during a run, and the reaction of the others."""

import os
import re
import signal

from tests import report
from tests.process import cluster, program

# Time within which the survivors of a group must notice.
_NOTICE_SECONDS = 5
_STOP_SECONDS = 10


def steps(status, names):
    """Steps that the slowest of the workers called `names` has finished."""
    progress = {entry["node"]: entry.get("progress") or {} for entry in status["nodes"]}
    return min(int(progress[node["id"]].get("step", 0)) for node in status["view"]["nodes"]
               if node["name"] in names)


class KillTest(cluster.ProcessTest):
    """A run of two servers and two groups of two workers that would take an hour."""

    def setUp(self):
        super().setUp()
        self.launcher = self.start(
            "covey run",
            [cluster.COVEY, "run", "--servers", 2, "--groups", 2, "--workers", 2,
             "--on-failure", "stop", "--scheduler-binary", cluster.SCHEDULER, "--server-binary", cluster.SERVER, "--",
             cluster.FASHION_MNIST, "--epochs", 1000, "--hidden", 16, "--batch", 16],
        )
        address = self.launcher.await_line(r"scheduler at (127\.0\.0\.1:\d+)").group(1)
        self.cluster = cluster.Observer(address)
        self.workers = [f"worker-{rank}" for rank in range(4)]
        status = self.cluster.await_status(
            lambda status: len(cluster.nodes(status, "WORKER")) == 4
            and steps(status, self.workers) > 0, "steps of all workers")
        self.pids = {node["name"]: int(node["process_id"]) for node in status["view"]["nodes"]}
        self.assertTrue({*self.workers, "server-0", "server-1"} <= set(self.pids))
        self.started = len(self.launcher.descendants())
        self.assertLessEqual(8, self.started)

    def assert_all_gone(self, seconds=_STOP_SECONDS):
        program.await_true(lambda: not self.launcher.descendants(),
                           f"nothing left running: {self.launcher}", seconds)

    def assert_failed(self, *expected):
        """The launcher ends with one line of its own that states the reason."""
        self.assertEqual(1, self.launcher.exit_code(), self.launcher)
        own = [line for line in self.launcher.lines("stderr") if line.startswith("covey run: ")]
        self.assertEqual(1, len(own), self.launcher)
        for part in expected:
            self.assertIn(part, own[0])
        self.assert_all_gone()

    def test_worker_killed(self):
        os.kill(self.pids["worker-1"], signal.SIGKILL)
        self.assert_failed("worker-1", str(self.pids["worker-1"]), "killed by signal 9")

    def test_the_other_group_goes_on(self):
        os.kill(self.pids["worker-1"], signal.SIGKILL)
        others = ["worker-2", "worker-3"]
        before = steps(self.cluster.status(), others)
        self.cluster.await_status(lambda status: steps(status, others) > before,
                                  "steps of the other group", _NOTICE_SECONDS)
        self.launcher.exit_code()
        for line in self.launcher.lines():
            if re.match(r"\W*worker-[23]\b.*fashion_mnist: ", line):
                self.assertRegex(line, "stopped by signal 15|drained", self.launcher)

    def test_server_killed(self):
        os.kill(self.pids["server-1"], signal.SIGKILL)
        self.assert_failed("server-1", str(self.pids["server-1"]), "killed by signal 9")

    def test_scheduler_killed(self):
        scheduler = next(pid for pid, command in self.launcher.descendants().items()
                         if command.startswith(cluster.SCHEDULER))
        os.kill(scheduler, signal.SIGKILL)
        self.assert_failed("scheduler", str(scheduler), "killed by signal 9")

    def test_interrupted(self):
        self.launcher.signal(signal.SIGINT)
        self.assertEqual(1, self.launcher.exit_code(_STOP_SECONDS))
        self.assert_failed("stopped by SIGINT")
        for name in self.pids:
            self.assertNotIn(f"{name} does not stop", str(self.launcher))

    def test_launcher_killed(self):
        self.launcher.signal(signal.SIGKILL)
        self.assertEqual(-signal.SIGKILL, self.launcher.exit_code())
        self.assert_all_gone()


if __name__ == "__main__":
    report.main()
