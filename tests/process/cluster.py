# SPDX-License-Identifier: Apache-2.0
"""A scheduler, servers and clients, each a real process on loopback."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from tests.process import program

SCHEDULER = program.built("scheduler/covey_scheduler")
SERVER = program.built("server/covey_server")
COVEY = program.built("client/cli/covey")
COUNTER = program.built("client/examples/counter")
FASHION_MNIST = program.built("worker/examples/fashion_mnist/fashion_mnist")
RING_WORKER = program.built("tests/process/ring_worker")
SYNTHETIC = program.built("worker/examples/synthetic/synthetic")
ALL_REDUCE = program.built("worker/examples/all_reduce/all_reduce")

JOB = "process-test"


class ProcessTest(unittest.TestCase):
    """Has a folder of its own, and kills every program that it started when the test ends."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def start(self, name, arguments, environment=None):
        child = program.Program(name, [str(argument) for argument in arguments], environment)
        self.addCleanup(child.kill)
        return child

    def run_to_end(self, name, arguments, environment=None, seconds=program.PATIENCE_SECONDS):
        """Returns the ended program, with its exit code as `code`."""
        child = self.start(name, arguments, environment)
        child.code = child.exit_code(seconds)
        return child

    def start_run(self, groups, workers, command, options=(), transport="ipc"):
        """Starts `covey run` with `workers` in each of `groups`, over Unix domain sockets or TCP."""
        return self.start("covey run", [
            COVEY, "run", "--groups", groups, "--workers", workers, "--transport", transport,
            "--scheduler-binary", SCHEDULER, "--server-binary", SERVER, *options, "--", *command])

    def result_of(self, groups, workers, command, options=(), seconds=240, transport="ipc"):
        """Returns the result of such a run, which must succeed."""
        run = self.start_run(groups, workers, command, options, transport)
        self.assertEqual(0, run.exit_code(seconds), run)
        return json.loads(run.lines("stdout")[-1])


class Observer:
    """Queries the scheduler at an address.

    where: the prefix of its commands.
    tls: the folder with the certificates of all roles; None = there are none.
    job: the name of its job.
    """

    def __init__(self, address, where=(), tls=None, job=JOB):
        self.address = address
        self.job = job
        self.where = where
        self.tls = tls

    def tls_of(self, role):
        """The options that show a certificate of this role."""
        return ["--tls", os.path.join(self.tls, role)] if self.tls else []

    def status(self):
        """The reply of `covey status`; None when there is none."""
        run = subprocess.run(
            [*self.where, COVEY, "status", "--scheduler", self.address, "-o", "json",
             *self.tls_of("viewer")],
            capture_output=True, text=True, timeout=program.PATIENCE_SECONDS)
        return json.loads(run.stdout) if run.stdout else None

    def await_status(self, condition, what, seconds=program.PATIENCE_SECONDS):
        """Polls until `condition` of the status is true; returns that status."""
        newest = []

        def satisfied():
            newest[:] = [self.status()]
            return newest[0] is not None and condition(newest[0])

        program.await_true(satisfied, what, seconds)
        return newest[0]


class Cluster(Observer):
    """Starts at once; ends with `test`, a ProcessTest.

    scheduler_program, server_program: of the processes that start from now on.
    standby_ports: of further schedulers, which start_standby starts.
    """

    def __init__(self, test, servers=1, groups=1, workers=1, loops=1, scheduler_options=(),
                 server_options=(), tls=None, job=JOB, scheduler_program=SCHEDULER,
                 server_program=SERVER, standby_ports=()):
        super().__init__(None, tls=tls, job=job)
        self._test = test
        self.scheduler_program, self.server_program = scheduler_program, server_program
        self._server_options = ["--loops", loops, *server_options]
        self._port_file = os.path.join(tempfile.mkdtemp(dir=test.folder), "port")
        self._scheduler_arguments = [
            "--job", job, "--servers", servers, "--groups", groups, "--workers", workers,
            *self.tls_of("scheduler"), *scheduler_options]
        self.scheduler, self.port = self._start_scheduler()
        self.address = ",".join(f"127.0.0.1:{port}" for port in (self.port, *standby_ports))
        self.servers = [None] * servers
        for rank in range(servers):
            self.start_server(rank)
        self.await_status(lambda status: len(nodes(status, "SERVER")) == servers, "all servers")

    def _start_scheduler(self, *more):
        scheduler = self._test.start(
            "scheduler", [self.scheduler_program, *self._scheduler_arguments,
                          "--port-file", self._port_file, *more])
        program.await_true(
            lambda: os.path.exists(self._port_file) or not scheduler.running(),
            f"a port file of {scheduler}",
        )
        with open(self._port_file, encoding="ascii") as file:
            return scheduler, int(file.read())

    def restart_scheduler(self):
        """Restarts it on the same port."""
        os.unlink(self._port_file)
        self.scheduler, _ = self._start_scheduler("--port", self.port)

    def start_standby(self, port, seconds):
        """Starts another scheduler, of scheduler_program, which stands by within `seconds`."""
        scheduler = self._test.start(
            "scheduler", [self.scheduler_program, *self._scheduler_arguments, "--port", port])
        scheduler.await_line("stands_by", seconds)
        return scheduler

    def start_server(self, rank):
        """Starts the first server of this rank, or one in place of a dead one."""
        self.servers[rank] = self._test.start(
            f"server-{rank}", [*self.server_arguments(rank), *self._server_options])

    def restart_the_fallen(self):
        """Acts as a supervisor of servers; one that comes back too early waits for its rank."""
        for rank, server in enumerate(self.servers):
            if not server.running():
                self.start_server(rank)

    def server_arguments(self, rank):
        return [self.server_program, "--scheduler", self.address, "--job", self.job, "--rank", rank,
                *self.tls_of("server")]

    def environment(self, rank=-1):
        """The environment with which a worker joins."""
        found = {"COVEY_SCHEDULER": self.address, "COVEY_JOB": self.job, "COVEY_RANK": str(rank)}
        return {**found, "COVEY_TLS": self.tls_of("worker")[1]} if self.tls else found

    def count(self):
        """Runs the example that adds one to a shared counter; returns the counter."""
        run = self._test.run_to_end("counter", [COUNTER, self.address, self.job,
                                                *self.tls_of("client")[1:]])
        self._test.assertEqual(0, run.code, run)
        return int(run.await_line(r"counted (\d+) times").group(1))

    def stop(self):
        """Stops all processes in order; one that reports an error fails the test."""
        for child in [*self.servers, self.scheduler]:
            child.signal(signal.SIGTERM)
            self._test.assertEqual(0, child.exit_code(), child)


def certificates(test, job=JOB, folder=None):
    """Makes an authority, and a folder with the certificates of all roles; returns the folder.

    folder: of both; the test's own by default.
    """
    folder = folder or test.folder
    os.makedirs(folder, exist_ok=True)
    authority, roles = (os.path.join(folder, name) for name in ("ca", "roles"))
    for words in (["init", authority],
                  ["issue", authority, "--every-role", "--job", job, "--out", roles]):
        run = test.run_to_end("covey certificates", [COVEY, "certificates", *words])
        test.assertEqual(0, run.code, run)
    return roles


def nodes(status, role, state="ALIVE"):
    """The view's nodes with this role and state, in order of rank."""
    found = [node for node in status["view"]["nodes"]
             if node["role"] == role and node["state"] == state]
    return sorted(found, key=lambda node: node["rank"])


def ports(node):
    """The ports that a node's loops listen on."""
    return [int(re.fullmatch(r"tcp://127\.0\.0\.1:(\d+)", endpoint).group(1))
            for endpoint in node["endpoints"] if endpoint]


def malformed(status):
    """Malformed messages that servers have refused, by server rank."""
    loads = {entry["node"]: entry.get("load") for entry in status["nodes"]}
    return [int((loads[node["id"]] or {}).get("malformed", 0)) for node in nodes(status, "SERVER")]
