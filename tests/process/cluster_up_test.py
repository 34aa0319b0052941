# SPDX-License-Identifier: Apache-2.0
"""`covey cluster`: three hosts with a real sshd each, from nothing to a trained model, and down."""

import json
import os
import re
import shutil
import signal
import stat

from tests import report
from tests.process import cluster, hosts, program

_JOB = cluster.JOB


class ClusterUpTest(cluster.ProcessTest):
    def setUp(self):
        super().setUp()
        self.hosts = hosts.SshHosts(self, 3)
        self.file = os.path.join(self.folder, "hosts.yaml")
        for path in (cluster.SCHEDULER, cluster.SERVER, cluster.FASHION_MNIST, cluster.SYNTHETIC):
            shutil.copy(path, self.folder)

    def address(self, index):
        return self.hosts.nodes[index].address

    def write(self, workers, scheduler="", copy="covey_scheduler, covey_server, fashion_mnist, synthetic",
              extra_hosts=(), top=""):
        """Scheduler and a server on the first host, a server on the second, workers on two."""
        first, second, third = map(self.address, range(3))
        with open(self.file, "w", encoding="utf-8") as file:
            file.write(f"""job: {_JOB}
copy: [{copy}]
{top}
{self.hosts.settings(extra_hosts)}
scheduler: {{hosts: {first}, port: 7070{scheduler}}}
servers: {{hosts: [{first}, {second}], flags: [--loops=1, --drain-deadline=5s]}}
workers:
  hosts: [{', '.join([second, third, *extra_hosts])}]
{workers}
""")
        with open(self.file, encoding="utf-8") as file:
            self.lines = file.read().splitlines()

    def synthetic(self, **more):
        self.write("  program: synthetic\n  arguments: [--steps, 1000000]", **more)

    def line_of(self, pattern):
        """hosts.yaml:N, where the pattern is."""
        [number] = [number for number, line in enumerate(self.lines, 1) if re.search(pattern, line)]
        return f"{self.file}:{number}: "

    def covey(self, code, *words, seconds=120):
        run = self.run_to_end("covey cluster", [*self.hosts.here.command(), cluster.COVEY, "cluster", *words],
                              seconds=seconds)
        self.assertEqual(code, run.code, run)
        return run

    def status(self, code):
        """{process: row} of `covey cluster status`."""
        run = self.covey(code, "status", self.file, "-o", "json")
        return {row["process"]: row for row in json.loads("".join(run.lines("stdout")))["processes"]}

    def states(self, code):
        return {name: row["state"] for name, row in self.status(code).items()}

    def assert_ended(self, down):
        """In order: workers, servers, scheduler."""
        ended = [line.split("-")[0] for line in down.lines("stdout") if line.endswith("has ended")]
        self.assertEqual(sorted(ended, key=["worker", "server", "scheduler"].index), ended)
        self.assertEqual(f"job {_JOB} is down", down.lines("stdout")[-1])

    def test_from_nothing_to_a_trained_model(self):
        self.write("  program: fashion_mnist\n"
                   "  arguments: [--epochs, 1, --hidden, 32, --contract, buffered]\n")
        dry = self.covey(0, "up", "--dry-run", self.file)
        self.assertEqual(2, dry.count("^# server-. on .*covey_server .--job"), dry)
        self.assertFalse(os.path.exists(self.hosts.folder(0)), "a dry run does nothing")
        self.assertEqual({"not started"}, set(self.states(1).values()))
        up = self.covey(0, "up", self.file)
        up.await_line(f"^job {_JOB} is up: 1 scheduler, 2 servers, 2 workers")
        up.await_line("^2 of 2 servers and 2 of 2 workers are registered")
        # Each host has the keys of its own roles alone.
        for index, roles in enumerate((["scheduler", "server"], ["server", "worker"], ["worker"])):
            tls = os.path.join(self.hosts.folder(index), "tls")
            self.assertEqual(roles, sorted(os.listdir(tls)))
            for role in roles:
                key = os.stat(os.path.join(tls, role, "node.key"))
                self.assertEqual(0o600, stat.S_IMODE(key.st_mode))
        finished = {"scheduler-0": "running", "server-0": "running", "server-1": "running",
                    "worker-0": "finished", "worker-1": "finished"}
        program.await_true(lambda: self.covey_states() == finished, "the end of the workers", 240)
        logs = self.covey(0, "logs", self.file, "worker-0", "worker-1")
        result = logs.await_line(r"worker-\d \| result (\{.*\})")
        self.assertGreater(json.loads(result.group(1))["test_accuracy"], 0.8)
        again = self.covey(0, "up", self.file)
        self.assertEqual(3, again.count("runs already$"), again)
        self.assertEqual(2, again.count("has finished"), again)
        self.assert_ended(self.covey(0, "down", self.file))
        self.assertEqual({"not started"}, set(self.states(1).values()))

    def covey_states(self):
        run = self.run_to_end("status", [*self.hosts.here.command(), cluster.COVEY, "cluster", "status",
                                         self.file, "-o", "json"])
        return {row["process"]: row["state"]
                for row in json.loads("".join(run.lines("stdout")))["processes"]}

    def test_a_process_that_dies_is_shown_and_comes_back(self):
        self.synthetic()
        self.covey(0, "up", self.file)
        self.assertEqual({"running"}, set(self.states(0).values()))
        worker, server = self.hosts.process_id(1, "worker-0"), self.hosts.process_id(1, "server-1")
        again = self.covey(0, "up", self.file)
        self.assertEqual(5, again.count("runs already$"), again)
        self.assertEqual(worker, self.hosts.process_id(1, "worker-0"))
        os.kill(worker, signal.SIGKILL)
        program.await_true(lambda: self.status(1)["worker-0"]["in_job"] == "dead", "a dead worker")
        shown = self.status(1)
        self.assertEqual("ended", shown["worker-0"]["state"])
        self.assertEqual({"running"}, {row["state"] for name, row in shown.items() if name != "worker-0"})
        self.covey(0, "up", self.file).await_line(f"^worker-0 on {self.address(1)} started")
        self.assertEqual(server, self.hosts.process_id(1, "server-1"))
        # A stranger with the number of a process of ours gets no signal.
        stranger = self.start("sleep", ["sleep", "600"])
        path = os.path.join(self.hosts.folder(2), "run", "worker-1.pid")
        worker = self.hosts.process_id(2, "worker-1")
        with open(path, encoding="ascii") as file:
            rest = file.read().split()[1:]
        with open(path, "w", encoding="ascii") as file:
            print(stranger.pid, *rest, file=file)
        self.assert_ended(self.covey(0, "down", "--kill", "--deadline", "20s", self.file))
        self.assertTrue(stranger.running())
        os.kill(worker, signal.SIGKILL)

    def test_logs_are_followed(self):
        self.synthetic()
        self.covey(0, "up", self.file)
        follow = self.start("follow", [*self.hosts.here.command(), cluster.COVEY, "cluster", "logs",
                                       "--follow", self.file, "server-1", "worker-1"])
        follow.await_line(r"server-1 \| .*server_joined")
        log = os.path.join(self.hosts.folder(2), "log", "worker-1.log")
        with open(log, "a", encoding="ascii") as file:
            file.write("a line of the worker\n")
        follow.await_line(r"worker-1 \| a line of the worker")
        follow.signal(signal.SIGINT)
        self.assertEqual(0, follow.exit_code(), follow)
        self.covey(1, "logs", self.file, "servr-1").await_line("did you mean server-1?")
        self.assert_ended(self.covey(0, "down", "--kill", "--deadline", "20s", self.file))

    def test_a_host_that_is_not_there_is_named(self):
        self.synthetic(extra_hosts=["10.44.0.99"], top="groups: 3")
        line = self.line_of(r"^  10\.44\.0\.99: ")
        up = self.covey(3, "up", self.file)
        up.await_line(re.escape(f"covey cluster up: {line}host 10.44.0.99 is not reached: "))
        self.assertFalse(os.path.exists(os.path.join(self.hosts.folder(0), "run", "scheduler-0.pid")))
        self.assertEqual("unreachable", self.status(3)["worker-2"]["state"])
        self.covey(3, "down", self.file).await_line("host 10.44.0.99 is not reached")

    def test_a_program_that_is_not_there_is_named(self):
        self.synthetic(copy="covey_scheduler, covey_server")
        up = self.covey(1, "up", self.file)
        up.await_line(re.escape(f"{self.line_of('^  hosts: ')}host {self.address(1)} has no program "
                                "synthetic for worker-0; install it there, or list its file in `copy`"))
        self.assertEqual({"not started"}, set(self.states(1).values()))
        self.synthetic(copy="no_such_file")
        self.covey(2, "up", self.file).await_line("copy: there is no file .*/no_such_file")

    def test_a_port_that_is_taken_is_shown_with_the_end_of_the_log(self):
        self.synthetic()
        listen = ("import socket, time\nlistener = socket.create_server(('%s', 7070))\nprint('listens', flush=True)\n"
                  "time.sleep(600)" % self.address(0))
        self.start("listener", [*self.hosts.nodes[0].command(), "python3", "-c", listen]).await_line("listens")
        up = self.covey(1, "up", self.file)
        up.await_line(re.escape(f"{self.line_of('^scheduler: ')}scheduler-0 on {self.address(0)} has ended"))
        up.await_line("^the end of its log:")
        up.await_line("7070")

    def test_a_worker_that_cannot_start_is_named(self):
        self.synthetic()
        self.lines = [line.replace("--steps, 1000000", "\"--it's $(wrong)\"") for line in self.lines]
        with open(self.file, "w", encoding="utf-8") as file:
            file.write("\n".join(self.lines))
        up = self.covey(1, "up", self.file)
        up.await_line(re.escape(f"{self.line_of('^  hosts: ')}worker-0 on {self.address(1)} has ended"))
        # Its argument has reached it as it was.
        up.await_line(re.escape("--it's $(wrong)"))
        self.assert_ended(self.covey(0, "down", self.file))

    def test_the_example_file_can_be_planned(self):
        example = os.path.join(self.folder, "example")
        os.mkdir(example)
        shutil.copy("deploy/hosts/hosts.yaml", example)
        for name in ("covey_scheduler", "covey_server", "fashion_mnist"):
            shutil.copy("/bin/true", os.path.join(example, name))
        plan = self.covey(0, "up", "--dry-run", os.path.join(example, "hosts.yaml"))
        self.assertEqual(2, plan.count("^# server-. on "), plan)
        self.assertEqual(2, plan.count("^# worker-. on "), plan)

    def test_a_wrong_file_or_word_is_answered(self):
        self.synthetic(top="sheduler: x")
        self.covey(2, "up", self.file).await_line('unknown key "sheduler" in the file; did you mean "scheduler"?')
        self.covey(2, "up", self.file + "x").await_line("hosts.yamlx")
        self.covey(2, "up").await_line("takes one file")
        self.covey(2, "pu", self.file).await_line("nothing named 'pu'")
        self.covey(2, "down", "--dry-run", self.file).await_line("down takes no --dry-run; only up does")


if __name__ == "__main__":
    report.main()
