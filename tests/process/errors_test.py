# SPDX-License-Identifier: Apache-2.0
"""Errors that users see after a mistake: soon, one line with problem, place and remedy."""

import gzip
import json
import os
import signal
import socket
import time

from tests import report
from tests.process import cluster, program
from tests.process.cluster import COUNTER, COVEY, FASHION_MNIST, JOB, SCHEDULER, SERVER

_FAILED, _USAGE, _UNREACHABLE = 1, 2, 3
_DATASET = "/usr/share/datasets/fashion-mnist"


def complaints(program):
    """Lines on standard error, without log lines that report no error."""
    found = []
    for line in program.lines("stderr"):
        try:
            entry = json.loads(line)
        except ValueError:
            found.append(line)
            continue
        if entry["level"] == "error":
            found.append(entry.get("reason") or entry.get("error") or line)
    return found


class ErrorsTest(cluster.ProcessTest):
    def setUp(self):
        super().setUp()
        # A port where no process listens, and that no other process can be given.
        taken = socket.socket()
        self.addCleanup(taken.close)
        taken.bind(("127.0.0.1", 0))
        self.silent_port = taken.getsockname()[1]
        self.nowhere = f"127.0.0.1:{self.silent_port}"

    def assert_complaint(self, program, exit_code, *expected):
        """It ends with the code and one error line, which contains each of `expected`."""
        with self.subTest(program.name):
            self.assertEqual(exit_code, program.exit_code(), program)
            self.assertEqual(1, len(complaints(program)), program)
            for part in expected:
                self.assertRegex(complaints(program)[0], part)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def test_unreachable_scheduler(self):
        waits_shortly = {"COVEY_JOIN_DEADLINE": "1s", "COVEY_SCHEDULER": self.nowhere}
        where = self.nowhere
        server = self.start("server", [SERVER], waits_shortly)
        worker = self.start("worker", [FASHION_MNIST], waits_shortly)
        commands = [self.start(name, [COVEY, name, "--scheduler", self.nowhere])
                    for name in ("status", "tables")]
        for command in commands:
            self.assert_complaint(command, _UNREACHABLE, "no scheduler answers", where, "running")
        for joiner in (server, worker):
            self.assert_complaint(joiner, _UNREACHABLE, "1s", where, "check")

    def test_a_scheduler_that_accepts_and_is_silent(self):
        with socket.create_server(("127.0.0.1", 0)) as mute:
            where = f"127.0.0.1:{mute.getsockname()[1]}"
            status = self.start("status", [COVEY, "status", "--scheduler", where])
            server = self.start("server", [SERVER, "--scheduler", where, "--join-deadline", "1s"])
            self.assert_complaint(status, _UNREACHABLE, "no scheduler answers", where)
            self.assert_complaint(server, _UNREACHABLE, "1s", where, "check")

    def test_a_process_that_has_not_joined_ends_when_it_is_told_to(self):
        running = cluster.Cluster(self, servers=1, groups=1, workers=2)
        alone = self.start("worker-0", [FASHION_MNIST], running.environment(0))
        program.await_true(lambda: cluster.nodes(running.status(), "WORKER"), "a worker that waits")
        nowhere = {"COVEY_SCHEDULER": self.nowhere}
        never_joined = [self.start(name, [path], nowhere)
                        for name, path in (("server", SERVER), ("worker", FASHION_MNIST))]
        for server_or_worker in [alone, *never_joined]:
            server_or_worker.await_line("topology_labels")
            begin = time.monotonic()
            # Twice, as some supervisors do.
            server_or_worker.signal(signal.SIGTERM)
            time.sleep(0.05)
            server_or_worker.signal(signal.SIGTERM)
            self.assertEqual(0, server_or_worker.exit_code(), server_or_worker)
            self.assertLess(time.monotonic() - begin, 10, server_or_worker)
        program.await_true(lambda: [node["state"] for node in running.status()["view"]["nodes"]
                                    if node["role"] == "WORKER"] == ["LEFT"], "its leave")

    def test_a_folder_of_certificates_that_is_missing(self):
        for name, path in (("server", SERVER), ("worker", FASHION_MNIST)):
            found = self.start(name, [path, "--tls", self.folder + "/none"],
                               {"COVEY_SCHEDULER": self.nowhere})
            self.assert_complaint(found, _USAGE, "there is no folder .*/none")

    def test_port_in_use(self):
        with socket.create_server(("127.0.0.1", 0)) as holder:
            port = holder.getsockname()[1]
            scheduler = self.start("scheduler", [SCHEDULER, "--port", port])
            server = self.start(
                "server", [SERVER, "--scheduler", self.nowhere, "--data-port", port, "--loops", 1])
            for program in (scheduler, server):
                self.assert_complaint(program, _FAILED, f"cannot listen on .*:{port}", "in use",
                                      "another port")

    def test_unknown_flag(self):
        cases = [
            ("scheduler", [SCHEDULER, "--sevrers", 2], "--servers"),
            ("server", [SERVER, "--shceduler", self.nowhere], "--scheduler"),
            ("worker", [FASHION_MNIST, "--epohcs", 2], "--epochs"),
            ("run", [COVEY, "run", "--sevrers", 2, "--", "true"], "--servers"),
            ("status", [COVEY, "status", "--shceduler", self.nowhere], "--scheduler"),
        ]
        for name, arguments, nearest in cases:
            wrong = next(word for word in arguments if str(word).startswith("--"))
            self.assert_complaint(self.start(name, arguments), _USAGE, wrong, nearest)
        self.assert_complaint(self.start("command", [COVEY, "rum"]), _USAGE, "rum", "run")

    def test_unknown_key_in_a_file(self):
        cases = [
            ("scheduler", [SCHEDULER], "sevrers: 2\n", "servers"),
            ("server", [SERVER], "scheduler: a:1\ndata_hots: b\n", "data_host"),
            ("run", [COVEY, "run"], "grups: 2\n", "groups"),
        ]
        for name, arguments, text, nearest in cases:
            path = self.write(name, text)
            key = text.splitlines()[-1].split(":")[0]
            self.assert_complaint(self.start(name, [*arguments, "--config", path]), _USAGE,
                                  f"{path}:{text.count(chr(10))}", key, nearest)

    def test_bad_value(self):
        broken = self.write("broken", "servers: [2\n")
        wrong = self.write("wrong", "job: x\nservers: two\n")
        missing = os.path.join(self.folder, "missing")
        at = ["--scheduler", self.nowhere]
        cases = [
            ("flag", [SCHEDULER, "--servers", "x"], {}, ["--servers", '"x"', "whole number"]),
            ("range", [SCHEDULER, "--servers", 0], {}, ["servers", "0", "1 to"]),
            ("environment", [SCHEDULER], {"COVEY_SERVERS": "x"}, ["COVEY_SERVERS", "whole"]),
            ("file", [SCHEDULER, "--config", wrong], {}, [f"{wrong}:2", "two", "whole number"]),
            ("no YAML", [SCHEDULER, "--config", broken], {}, [broken, "YAML"]),
            ("no file", [SCHEDULER, "--config", missing], {}, [missing, "check"]),
            ("address", [SERVER, "--scheduler", "here"], {}, ["here", "HOST:PORT"]),
            ("no address", [SERVER], {}, ["scheduler", "HOST:PORT"]),
            ("choice", [SERVER, *at, "--transport", "x"], {}, ["transport", "x", "tcp or ipc"]),
            ("format", [COVEY, "status", *at, "-o", "xml"], {}, ["output", "xml", "json"]),
            ("no program", [COVEY, "run"], {}, ["run", "-- PROGRAM"]),
            ("bad program", [COVEY, "run", "--", missing], {}, [missing, "No such file", "check"]),
            ("worker", [FASHION_MNIST, "--epochs", 0], {}, ["--epochs", "0", "1 to 1000"]),
            ("contract", [FASHION_MNIST, "--contract", "bps"], {}, ["bps", "bsp, ssp:N"]),
            ("joining", [FASHION_MNIST],
             {"COVEY_SCHEDULER": self.nowhere, "COVEY_TRANSPORT": "x"}, ["x", "tcp or ipc"]),
        ]
        for name, arguments, environment, expected in cases:
            self.assert_complaint(self.start(name, arguments, environment), _USAGE, *expected)

    def test_scheduler_log_that_is_something_else(self):
        path = self.write("notes", "Nobody wants to lose these lines to a log.\n")
        scheduler = self.start("scheduler", [SCHEDULER, "--log-file", path])
        self.assert_complaint(scheduler, _FAILED, path, "not a scheduler log", "another file")
        with open(path, encoding="utf-8") as file:
            self.assertIn("Nobody wants", file.read())

    def test_who_may_not_join(self):
        running = cluster.Cluster(self)
        other_job = {**running.environment(), "COVEY_JOB": "other"}
        server = self.start("server", [*running.server_arguments(0)[:-4], "--job", "other"])
        worker = self.start("worker", [FASHION_MNIST], other_job)
        counter = self.start("counter", [COUNTER, running.address, "other"])
        for stranger in (server, worker, counter):
            self.assert_complaint(stranger, _FAILED, "other", JOB, running.address + "|job")
        duplicate = self.start("duplicate", running.server_arguments(0))
        self.assert_complaint(duplicate, _FAILED, "rank 0", "server-0", "another|any|rank")
        self.assertEqual(1, running.count())

    def test_duplicate_rank_of_a_worker(self):
        running = cluster.Cluster(self, workers=2)
        first = self.start("first", [cluster.RING_WORKER], running.environment(1))
        running.await_status(lambda status: cluster.nodes(status, "WORKER"), "the first")
        second = self.start("second", [FASHION_MNIST], running.environment(1))
        self.assert_complaint(second, _FAILED, "rank 1", "worker-1", "another|any|rank")
        self.assertTrue(first.running(), first)

    def truncated_dataset(self):
        """The dataset with one file truncated."""
        folder = os.path.join(self.folder, "truncated")
        os.mkdir(folder)
        for name in os.listdir(_DATASET):
            os.symlink(os.path.join(_DATASET, name), os.path.join(folder, name))
        victim = os.path.join(folder, "train-images-idx3-ubyte.gz")
        with open(victim, "rb") as file:
            data = file.read()
        os.unlink(victim)
        with open(victim, "wb") as file:
            file.write(data[: len(data) // 2])
        return folder, victim

    def misshapen_dataset(self):
        """A dataset whose images have another size."""
        folder = os.path.join(self.folder, "misshapen")
        os.mkdir(folder)
        victim = os.path.join(folder, "train-images-idx3-ubyte.gz")
        with gzip.open(victim, "wb") as file:
            file.write(bytes([0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 32, 0, 0, 0, 32]) + bytes(1024))
        return folder, victim

    def test_dataset(self):
        truncated, truncated_file = self.truncated_dataset()
        misshapen, misshapen_file = self.misshapen_dataset()
        cases = [
            ("missing", "/no/such", ["/no/such/train-images", "No such file", "apt-get"]),
            ("truncated", truncated, [truncated_file, "truncated", "apt-get"]),
            ("misshapen", misshapen, [misshapen_file, "32 instead of 28", "--data-dir"]),
        ]
        running = cluster.Cluster(self, groups=len(cases))
        workers = [self.start(name, [FASHION_MNIST, "--data-dir", folder], running.environment(i))
                   for i, (name, folder, _) in enumerate(cases)]
        for worker, (_, _, expected) in zip(workers, cases):
            self.assert_complaint(worker, _FAILED, *expected)

    def test_table_of_another_shape(self):
        running = cluster.Cluster(self, groups=2)
        first = self.start("first", [FASHION_MNIST, "--hidden", 16], running.environment(0))
        second = self.start("second", [FASHION_MNIST, "--hidden", 24], running.environment(1))
        running.await_status(lambda status: status["view"]["tables"], "tables")
        hidden = running.status()["view"]["tables"][0]["spec"]["shape"]
        late = second if "16" in map(str, hidden) else first
        self.assert_complaint(late, _FAILED, "fashion_mnist/", "exists", "name|drop|spec")


if __name__ == "__main__":
    report.main()
