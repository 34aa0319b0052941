# SPDX-License-Identifier: Apache-2.0
"""`covey run` with programs that misbehave: it reports what happened, and leaves nothing behind."""

import json
import os
import signal
import sys

from tests import report
from tests.process import cluster, program

# The binary that deploy/quickstart builds and runs instead of covey.
_COVEY_RUN = program.built("client/cli/covey_run")

# Handles SIGTERM, and continues.
_STUBBORN = """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
print("ready", flush=True)
while signal.sigwait([signal.SIGTERM]):
    print("not yet", flush=True)
"""


class CliRunTest(cluster.ProcessTest):
    """Workers are small scripts here; they do not use a cluster."""

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def script(self, text):
        """An executable program that begins by reading its rank from $COVEY_RANK."""
        path = self.write("worker", "#!/bin/sh\n" + text)
        os.chmod(path, 0o755)
        return path

    def covey_run(self, *arguments):
        return self.start("covey run", [cluster.COVEY, "run", *arguments])

    def ended(self, run, code):
        """Lines of standard error, once it has ended with `code` and nothing of it is left."""
        self.assertEqual(code, run.exit_code(), run)
        self.assertEqual({}, run.descendants(), "left behind")
        return run.lines("stderr")

    def refused(self, arguments, message):
        """The run prints `message` as its only line and does nothing."""
        run = self.covey_run(*arguments)
        lines = self.ended(run, 2)
        self.assertEqual(1, len(lines), run)
        self.assertIn(message, lines[0])
        self.assertEqual([], run.lines("stdout"))

    def test_quickstart_has_a_program_with_this_command_alone(self):
        run = self.start("covey_run", [_COVEY_RUN, "run", "--", self.script("exit 0\n")])
        self.ended(run, 0)
        refused = self.start("covey_run", [_COVEY_RUN, "bench"])
        self.assertIn("did you mean run?", "".join(self.ended(refused, 2)))

    def test_wrong_usage(self):
        plain = self.write("plain", "text")
        self.refused(["--", "/no/such/program"], "/no/such/program: No such file")
        self.refused(["--", "no-such-program"], "no program 'no-such-program' in PATH")
        self.refused(["--", plain], "plain is not executable")
        self.refused([], "-- PROGRAM")
        self.refused(["--server", "2", "--", "sh"], "did you mean --servers?")
        self.refused(["--workers", "0", "--", "sh"], "--workers is 0; choose 1 to")
        self.refused(["--transport", "udp", "--", "sh"], "choose auto, tcp or ipc")
        self.refused(["--report", "/no/such/x.html", "--", "sh"], "writing /no/such/x.html")
        self.refused(["--server-binary", "/no/server", "--", "sh"], "/no/server")

    def test_the_last_line_is_the_result(self):
        page, course = os.path.join(self.folder, "r.html"), os.path.join(self.folder, "r.json")
        logs = os.path.join(self.folder, "logs/run")
        script = self.script('echo to-error-$COVEY_RANK >&2\necho "result {\\"rank\\": $COVEY_RANK}"\n')
        run = self.covey_run("--servers", 2, "--groups", 2, "--workers", 1, "--report", page,
                             "--json", course, "--log-dir", logs, "--", script)
        errors = self.ended(run, 0)
        result = json.loads(run.lines("stdout")[-1])
        self.assertIn(result.pop("rank"), [0, 1])
        self.assertGreater(result.pop("wall_seconds"), 0)
        self.assertEqual({"servers": 2, "groups": 2, "workers": 2}, result)
        self.assertIn("worker-1  | to-error-1", errors)
        with open(page, encoding="utf-8") as file:
            self.assertIn("worker in 2 groups of 1 worker", file.read())
        with open(course, encoding="utf-8") as file:
            self.assertEqual(2, json.load(file)["workers"])
        with open(os.path.join(logs, "worker-0.log"), encoding="utf-8") as file:
            self.assertIn("to-error-0\n", file.read())

    def test_a_result_that_is_no_object_is_not_used(self):
        run = self.covey_run("--", self.script("echo result 7\n"))
        self.assertIn("not a JSON object", "\n".join(self.ended(run, 0)))
        self.assertEqual(1, json.loads(run.lines("stdout")[-1])["workers"])

    def test_a_worker_that_fails(self):
        script = self.script(
            '[ $COVEY_RANK = 1 ] && { echo no luck >&2; exit 3; }\n'
            'read forever < "$0.fifo"\n')
        os.mkfifo(script + ".fifo")
        run = self.covey_run("--on-failure", "stop", "--groups", 2, "--workers", 1, "--", script)
        errors = self.ended(run, 1)
        self.assertRegex(errors[-1], r"^covey run: worker-1 \(pid \d+\) exited with code 3$")
        self.assertIn("in all: 1 died", errors[-2])
        self.assertIn("worker-1 exited with code 3", errors[-3])
        self.assertIn("worker-1  | no luck", errors)
        self.assertEqual([], [line for line in run.lines("stdout") if line.startswith("{")])

    def test_a_worker_that_is_killed(self):
        script = self.script('echo $$ > "$0.$COVEY_RANK.new"\nmv "$0.$COVEY_RANK.new" "$0.$COVEY_RANK"\n'
                             'read forever < "$0.fifo"\n')
        os.mkfifo(script + ".fifo")
        run = self.covey_run("--on-failure", "stop", "--groups", 2, "--workers", 1, "--", script)
        program.await_true(lambda: all(os.path.exists(f"{script}.{rank}") for rank in range(2)),
                           "both workers")
        with open(script + ".0", encoding="ascii") as file:
            killed = int(file.read())
        os.kill(killed, signal.SIGKILL)
        errors = self.ended(run, 1)
        self.assertEqual(f"covey run: worker-0 (pid {killed}) killed by signal 9 (Killed)", errors[-1])

    def test_a_run_goes_on_without_a_worker_that_fails(self):
        script = self.script('[ $COVEY_RANK = 1 ] && exit 3\necho "result {}"\n')
        run = self.covey_run("--groups", 2, "--workers", 1, "--", script)
        errors = "\n".join(self.ended(run, 0))
        self.assertIn("worker-1 exited with code 3", errors)
        self.assertIn("in all: 1 died", errors)
        self.assertEqual(1, json.loads(run.lines("stdout")[-1])["losses"]["died"])

    def test_a_run_of_which_nobody_is_left_fails(self):
        run = self.covey_run("--groups", 2, "--workers", 1, "--", self.script("exit 3\n"))
        self.assertRegex(self.ended(run, 1)[-1], r"worker-\d \(pid \d+\) exited with code 3$")

    def test_faults_that_make_no_sense(self):
        self.refused(["--kill", "server-7@1s", "--", "true"], "server-7")
        self.refused(["--kill", "server-0", "--", "true"], "not of the form NODE@TIME")
        self.refused(["--faults", "/no/such/file", "--", "true"], "/no/such/file")
        faults = self.write("faults", "- {at: 1s, kind: loss, target: worker-0, args: {chance: 0.5}}\n")
        self.refused(["--faults", faults, "--", "true"], "choose kill, stop or restart")

    def test_a_server_that_dies(self):
        script = self.script('read forever < "$0.fifo"\n')
        os.mkfifo(script + ".fifo")
        server = self.write("server", "#!/bin/sh\necho disk on fire >&2\nexit 7\n")
        os.chmod(server, 0o755)
        run = self.covey_run("--server-binary", server, "--", script)
        errors = self.ended(run, 1)
        self.assertRegex(errors[-1], r"^covey run: server-0 \(pid \d+\) exited with code 7$")
        self.assertIn("in all: 1 died", errors[-2])
        self.assertIn("server-0 exited with code 7", errors[-3])
        self.assertIn("server-0  | disk on fire", errors)

    def test_a_scheduler_that_dies(self):
        scheduler = self.write("scheduler", "#!/bin/sh\nexit 7\n")
        os.chmod(scheduler, 0o755)
        run = self.covey_run("--scheduler-binary", scheduler, "--", "true")
        self.assertRegex(self.ended(run, 1)[-1], r"scheduler \(pid \d+\) exited with code 7$")

    def start_stubborn(self, *arguments):
        run = self.covey_run(*arguments, "--", sys.executable, "-c", _STUBBORN)
        run.await_line(r"worker-0\s+\| ready")
        return run

    def test_whoever_ignores_sigterm_is_killed(self):
        run = self.start_stubborn("--grace", "200ms")
        run.signal(signal.SIGTERM)
        errors = self.ended(run, 1)
        self.assertTrue(any("worker-0 does not stop" in line for line in errors), run)
        self.assertIn("stopped by SIGTERM before the programs had ended", errors[-1])

    def test_a_second_interruption_kills_at_once(self):
        run = self.start_stubborn("--grace", "1h")
        run.signal(signal.SIGINT)
        run.await_line(r"worker-0\s+\| not yet")
        run.signal(signal.SIGINT)
        self.assertIn("stopped by SIGINT", self.ended(run, 1)[-1])

    def test_a_run_that_takes_too_long(self):
        run = self.start_stubborn("--timeout", "1s", "--grace", "100ms")
        self.assertIn("the run took longer than --timeout 1s", self.ended(run, 1)[-1])

    def test_nothing_survives_the_launcher(self):
        run = self.start_stubborn()
        run.signal(signal.SIGKILL)
        run.exit_code()
        program.await_true(lambda: not run.descendants(), "the end of its children")


if __name__ == "__main__":
    report.main()
