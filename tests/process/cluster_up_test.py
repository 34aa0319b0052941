# SPDX-License-Identifier: Apache-2.0
"""`covey cluster`: three hosts with a real sshd each, from nothing to a trained model, and down."""

import json
import os
import re
import shutil
import signal
import stat
import unittest

from tests import report
from tests.process import cluster, etcd, hosts, program

_JOB = cluster.JOB


class HostsTest(cluster.ProcessTest):
    subnet = "10.44.0."
    user = "root"

    def setUp(self):
        super().setUp()
        self.hosts = hosts.SshHosts(self, 3, self.subnet, self.user)
        self.file = os.path.join(self.folder, "hosts.yaml")
        for path in (cluster.SCHEDULER, cluster.SERVER, cluster.FASHION_MNIST, cluster.SYNTHETIC):
            shutil.copy(path, self.folder)

    def address(self, index):
        return self.hosts.nodes[index].address

    def write(self, workers, copy="covey_scheduler, covey_server, fashion_mnist, synthetic",
              extra_hosts=(), top="", schedulers=1, flags="--loops=1", scheduler_flags=""):
        """Scheduler and a server on the first host, a server on the second, workers on two."""
        first, second, third = map(self.address, range(3))
        with open(self.file, "w", encoding="utf-8") as file:
            file.write(f"""job: {_JOB}
copy: [{copy}]
{top}
{self.hosts.settings(extra_hosts)}
scheduler: {{hosts: [{', '.join([first, second][:schedulers])}], port: 7070, flags: [{scheduler_flags}]}}
servers: {{hosts: [{first}, {second}], flags: [{flags}, --drain-deadline=5s]}}
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


class ClusterUpTest(HostsTest):

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

    @unittest.skipIf(etcd.MISSING, etcd.MISSING)
    def test_a_standby_takes_over_and_the_last_state_is_kept(self):
        address, store = f"{self.hosts.here.address}:2379", os.path.join(self.folder, "store")
        self.start("etcd", [
            *self.hosts.here.command(), "etcd", "--data-dir", os.path.join(self.folder, "etcd"),
            "--listen-client-urls", f"http://{address}", "--advertise-client-urls", f"http://{address}",
        ]).await_line("ready to serve client requests")
        self.synthetic(schedulers=2, flags=f"--store={store}",
                       scheduler_flags=f"--etcd={address}, --store={store}")
        up = self.covey(0, "up", self.file)
        up.await_line(f"^job {_JOB} is up: 2 schedulers, 2 servers, 2 workers")
        self.assertEqual({"running"}, set(self.states(0).values()))
        [leader] = [number for number in (0, 1) if self.leads(number)]
        other = 1 - leader
        os.kill(self.hosts.process_id(leader, f"scheduler-{leader}"), signal.SIGKILL)
        program.await_true(lambda: self.leads(other), "another leader")
        shown = self.states(1)
        self.assertEqual("ended", shown.pop(f"scheduler-{leader}"))
        self.assertEqual({"running"}, set(shown.values()))
        again = self.covey(0, "up", self.file)
        again.await_line(f"^scheduler-{leader} on {self.address(leader)} started")
        self.assertEqual(5, again.count("runs already$"), again)
        self.assert_ended(self.covey(0, "down", self.file))
        snapshots = self.run_to_end("covey snapshot", [cluster.COVEY, "snapshot", "list", "--store", store])
        self.assertEqual(0, snapshots.code, snapshots)
        snapshots.await_line("snapshot-000001.* complete")

    def leads(self, number):
        """Whether this scheduler leads, or did when it ended; as its log says."""
        log = os.path.join(self.hosts.folder(number), "log", f"scheduler-{number}.log")
        with open(log, encoding="utf-8") as file:
            events = [json.loads(line)["event"] for line in file if line.startswith("{")]
        return [event for event in events if event in ("leads", "stands_by")][-1:] == ["leads"]


class OtherUserTest(HostsTest):
    user = "covey"

    def test_nothing_needs_root(self):
        self.synthetic()
        up = self.covey(0, "up", self.file)
        up.await_line("^2 of 2 servers and 2 of 2 workers are registered")
        self.assertEqual({"running"}, set(self.states(0).values()))
        for index, name in ((0, "scheduler-0"), (1, "server-1"), (2, "worker-1")):
            process = self.hosts.process_id(index, name)
            self.assertEqual(os.stat(self.hosts.folder(index)).st_uid, os.stat(f"/proc/{process}").st_uid)
            self.assertNotEqual(0, os.stat(f"/proc/{process}").st_uid)
        self.assert_ended(self.covey(0, "down", "--kill", "--deadline", "20s", self.file))


class Ipv6Test(HostsTest):
    subnet = "fd44::"

    def test_hosts_with_addresses_of_ipv6(self):
        self.synthetic()
        up = self.covey(0, "up", self.file)
        up.await_line("^2 of 2 servers and 2 of 2 workers are registered")
        self.assertEqual({"running"}, set(self.states(0).values()))
        observer = cluster.Observer(f"[{self.address(0)}]:7070", self.hosts.here.command())
        observer.tls = os.path.join(self.folder, f"{_JOB}-tls")
        observer.await_status(lambda now: max(int(node.get("progress", {}).get("step", 0))
                                              for node in now["nodes"]) > 20, "steps")
        self.assert_ended(self.covey(0, "down", "--kill", "--deadline", "20s", self.file))


if __name__ == "__main__":
    report.main()
