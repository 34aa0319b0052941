# SPDX-License-Identifier: Apache-2.0
"""What scheduler, servers and workers tell the supervisor that has started them, and when."""

import os
import signal
import socket

from tests import report
from tests.process import cluster, program


class Supervisor:
    """The socket of NOTIFY_SOCKET. Ends with `test`."""

    def __init__(self, test, name):
        # An abstract name has no folder that could be too deep.
        self.environment = {"NOTIFY_SOCKET": f"@covey-notify-test-{os.getpid()}-{name}"}
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        test.addCleanup(self._socket.close)
        self._socket.bind("\0" + self.environment["NOTIFY_SOCKET"][1:])

    def next(self):
        """The next message, as a dictionary of its lines; waits for it."""
        self._socket.settimeout(program.PATIENCE_SECONDS)
        return dict(line.split("=", 1) for line in self._socket.recv(4096).decode().split("\n"))

    def has_message(self):
        self._socket.settimeout(0)
        try:
            return bool(self._socket.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return False


class NotifyTest(cluster.ProcessTest):
    def test_a_server_is_ready_when_it_is_registered(self):
        with socket.socket() as taken:
            # A port at which nobody listens yet.
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
        supervisor = Supervisor(self, "server")
        server = self.start("server", [
            cluster.SERVER, "--scheduler", f"127.0.0.1:{port}", "--job", cluster.JOB, "--rank", 0,
            "--loops", 1], supervisor.environment)
        server.await_line("topology_labels")
        self.assertFalse(supervisor.has_message())
        of_scheduler = Supervisor(self, "scheduler")
        scheduler = self.start("scheduler", [
            cluster.SCHEDULER, "--job", cluster.JOB, "--servers", 1, "--groups", 1, "--workers", 1,
            "--port", port], of_scheduler.environment)
        ready = of_scheduler.next()
        self.assertEqual("1", ready["READY"])
        self.assertEqual(f"job {cluster.JOB}, listening on 127.0.0.1:{port}", ready["STATUS"])
        ready = supervisor.next()
        self.assertEqual("1", ready["READY"])
        self.assertRegex(ready["STATUS"], f"^server 0 of job {cluster.JOB}, listening on tcp://")

        for child, notices in ((server, supervisor), (scheduler, of_scheduler)):
            child.signal(signal.SIGTERM)
            stopping = notices.next()
            self.assertEqual("1", stopping["STOPPING"])
            # Longer than --drain-deadline, whose default is 30 s.
            self.assertGreater(int(stopping["EXTEND_TIMEOUT_USEC"]), 30_000_000)
            self.assertEqual(0, child.exit_code(), child)

    def test_a_worker_is_ready_before_its_group_is(self):
        running = cluster.Cluster(self, servers=1, groups=1, workers=2)
        command = [cluster.SYNTHETIC, "--steps", 1000000]
        notices = [Supervisor(self, f"worker-{rank}") for rank in range(2)]
        workers = []
        for rank, supervisor in enumerate(notices):
            workers.append(self.start(f"worker-{rank}", command, {
                **running.environment(rank), **supervisor.environment}))
            ready = supervisor.next()
            self.assertEqual("1", ready["READY"])
            self.assertEqual(f"worker {rank} of job {cluster.JOB}, waiting for its group",
                             ready["STATUS"])
        for rank, supervisor in enumerate(notices):
            self.assertEqual({"STATUS": f"worker {rank} of job {cluster.JOB}, in a group of 2"},
                             supervisor.next())
        workers[1].signal(signal.SIGTERM)
        self.assertEqual("1", notices[1].next()["STOPPING"])
        self.assertEqual(0, workers[1].exit_code(), workers[1])
        self.assertTrue(workers[0].running(), workers[0])


if __name__ == "__main__":
    report.main()
