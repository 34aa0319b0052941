# SPDX-License-Identifier: Apache-2.0
"""Several schedulers whose log is in etcd: one leads, and a deposed leader decides nothing."""

import os
import signal
import time
import unittest

from tests import report
from tests.process import cluster, etcd, outage, program

# The lease, etcd's own margin, the standby's next attempt, and a slow machine's margin.
_TAKEOVER_SECONDS = 20
# Longer than the lease, and than the silence after which nodes would be declared dead.
_WITHOUT_ETCD_SECONDS = 10
# Longer than the delay between two tries of a push.
_LEASE_SECONDS = 10
# A wrong address or prefix is reported within this time, on a slow machine too.
_CLEAR_SECONDS = 15


@unittest.skipIf(etcd.MISSING, etcd.MISSING)
class EtcdTest(cluster.ProcessTest):
    def start_all(self, members=1, servers=2, groups=0, more=(), hears_leader_only=False):
        """An etcd, two schedulers, and servers that know both schedulers.

        more: further options of the schedulers.
        hears_leader_only: the servers know only the scheduler that leads.
        """
        self.etcd = etcd.Etcd(self, members)
        self.started = 0
        self.options = [cluster.SCHEDULER, "--job", cluster.JOB, "--servers", servers,
                        "--groups", groups, "--workers", 1, "--etcd", ",".join(self.etcd.addresses),
                        *more]
        self.schedulers = []
        self.observers = []
        for _ in range(2):
            self.add_scheduler()
        self.address = ",".join(observer.address for observer in self.observers)
        leader, _ = program.await_true(self.leading, "a leader")
        known = self.observers[leader].address if hears_leader_only else self.address
        self.servers = [self.start(f"server-{rank}", self.server_arguments(rank, known))
                        for rank in range(servers)]
        self.await_status(lambda status: len(cluster.nodes(status, "SERVER")) == servers,
                          "all servers")

    def server_arguments(self, rank, address):
        return [cluster.SERVER, "--scheduler", address, "--job", cluster.JOB, "--rank", rank,
                "--loops", 1]

    def add_scheduler(self, port=0):
        self.started += 1
        port_file = os.path.join(self.folder, f"port-{self.started}")
        scheduler = self.start(f"scheduler-{self.started}", [
            *self.options, "--port-file", port_file, "--port", port])
        program.await_true(lambda: os.path.exists(port_file), f"a port of {scheduler}")
        with open(port_file, encoding="ascii") as file:
            observer = cluster.Observer(f"127.0.0.1:{int(file.read())}")
        scheduler.await_line("leads|stands_by")
        self.schedulers.append(scheduler)
        self.observers.append(observer)
        return scheduler

    def leading(self):
        """Number and status of the scheduler that leads; the newest of several."""
        found = [(number, status) for number, observer in enumerate(self.observers)
                 if self.schedulers[number].running() and (status := observer.status())]
        return max(found, key=lambda one: int(one[1]["view"]["epoch"]), default=None)

    def await_status(self, condition, what, seconds=program.PATIENCE_SECONDS):
        def satisfied():
            leading = self.leading()
            return leading if leading and condition(leading[1]) else None

        return program.await_true(satisfied, what, seconds)[1]

    def await_takeover(self, old, seconds=_TAKEOVER_SECONDS):
        other = 1 - old
        self.schedulers[other].await_line("leads", seconds)
        return other

    def count(self):
        run = self.run_to_end("counter", [cluster.COUNTER, self.address, cluster.JOB])
        self.assertEqual(0, run.code, run)
        return int(run.await_line(r"counted (\d+) times").group(1))

    def test_the_standby_takes_over(self):
        self.start_all()
        self.assertEqual(1, self.count())
        old, before = self.leading()
        killed = time.monotonic()
        self.schedulers[old].signal(signal.SIGKILL)
        new = self.await_takeover(old)
        led = time.monotonic()
        self.assertEqual(2, self.count())
        print(f"led after {led - killed:.2f} s, counted after {time.monotonic() - killed:.2f} s")
        after = self.observers[new].status()
        self.assertEqual(before["view"]["tables"], after["view"]["tables"])
        self.assertGreater(int(after["view"]["epoch"]), int(before["view"]["epoch"]))
        # All servers are still registered, under the same ids.
        self.assertEqual([node["id"] for node in cluster.nodes(before, "SERVER")],
                         [node["id"] for node in cluster.nodes(after, "SERVER")])
        # Fail back: the scheduler that was killed is restarted.
        again = self.add_scheduler(int(self.observers[old].address.split(":")[1]))
        again.await_line("stands_by.*" + self.observers[new].address)
        self.schedulers[new].signal(signal.SIGTERM)
        again.await_line("leads", _TAKEOVER_SECONDS)
        self.assertEqual(0, self.schedulers[new].exit_code())
        self.assertEqual(3, self.count())

    def start_training(self):
        """One worker in each of two groups, on tables of two replicas; they already train."""
        environment = {"COVEY_SCHEDULER": self.address, "COVEY_JOB": cluster.JOB}
        workers = [
            self.start(f"worker-{rank}",
                       [cluster.FASHION_MNIST, "--epochs", 1000, "--hidden", 16, "--batch", 16],
                       {**environment, "COVEY_RANK": str(rank)})
            for rank in range(2)
        ]
        self.assert_trains_on(workers)
        return workers

    def assert_trains_on(self, workers):
        for worker in workers:
            worker.await_line("^progress ", count=worker.count("^progress ") + 2)

    def assert_nobody_was_lost(self):
        after = self.await_status(
            lambda status: len(cluster.nodes(status, "WORKER")) == 2, "the workers")
        for role in ["WORKER", "SERVER"]:
            self.assertFalse(cluster.nodes(after, role, "DEAD"))

    def test_training_outlives_a_takeover(self):
        self.start_all(groups=2)
        workers = self.start_training()
        old, _ = self.leading()
        self.schedulers[old].signal(signal.SIGKILL)
        self.await_takeover(old)
        self.assert_trains_on(workers)
        self.assert_nobody_was_lost()

    def test_training_outlives_etcd(self):
        self.start_all(groups=2)
        workers = self.start_training()
        old, before = self.leading()
        self.etcd.members[0].signal(signal.SIGKILL)
        self.etcd.members[0].exit_code()
        until = time.monotonic() + _WITHOUT_ETCD_SECONDS
        while time.monotonic() < until:
            self.assert_trains_on(workers)
        self.assertIsNone(self.leading())
        self.etcd.start(0)
        self.await_takeover(old)
        self.assert_trains_on(workers)
        self.assert_nobody_was_lost()
        after = self.leading()[1]
        self.assertEqual(before["view"]["tables"], after["view"]["tables"])

    def test_an_etcd_that_is_not_there_is_named(self):
        run = self.run_to_end("scheduler", [cluster.SCHEDULER, "--job", cluster.JOB, "--etcd",
                                            "nowhere"])
        self.assertEqual(2, run.code)
        self.assertIn("HOST:PORT", run.lines("stderr")[-1])
        address = f"127.0.0.1:{etcd.free_ports(1)[0]}"
        port_file = os.path.join(self.folder, "port")
        scheduler = self.start("scheduler", [cluster.SCHEDULER, "--job", cluster.JOB, "--etcd",
                                             address, "--port-file", port_file])
        scheduler.await_line("stands_by.*" + address + " does not answer", _CLEAR_SECONDS)
        # etcd may still come up, so the scheduler waits; queries are told what for.
        program.await_true(lambda: os.path.exists(port_file), "a port")
        with open(port_file, encoding="ascii") as file:
            asked = self.run_to_end("status", [
                cluster.COVEY, "status", "--scheduler", f"127.0.0.1:{int(file.read())}"])
        self.assertNotEqual(0, asked.code)
        self.assertIn(address + " does not answer", "".join(asked.lines("stderr")))

    def test_the_log_of_another_job_is_refused(self):
        self.etcd = etcd.Etcd(self)
        arguments = ["--etcd", self.etcd.addresses[0], "--etcd-prefix", "same"]
        port_file = os.path.join(self.folder, "port")
        first = self.start("first", [cluster.SCHEDULER, "--job", "one", *arguments, "--port-file",
                                     port_file])
        program.await_true(lambda: os.path.exists(port_file), "a port")
        first.await_line("leads")
        with open(port_file, encoding="ascii") as file:
            self.start("server", [cluster.SERVER, "--scheduler", f"127.0.0.1:{int(file.read())}",
                                  "--job", "one", "--rank", 0, "--loops", 1])
        first.await_line("server-0")
        first.signal(signal.SIGTERM)
        self.assertEqual(0, first.exit_code())
        second = self.start("second", [cluster.SCHEDULER, "--job", "two", *arguments])
        self.assertEqual(1, second.exit_code(_CLEAR_SECONDS))
        self.assertIn("belongs to job 'one', not 'two'", second.lines("stderr")[-1])

    def test_who_was_overtaken_decides_nothing(self):
        self.start_all()
        self.assertEqual(1, self.count())
        old, before = self.leading()
        self.schedulers[old].signal(signal.SIGSTOP)
        new = self.await_takeover(old)
        self.assertEqual(2, self.count())
        decided = self.observers[new].status()
        self.schedulers[old].signal(signal.SIGCONT)
        self.assertEqual(1, self.schedulers[old].exit_code())
        self.assertRegex(self.schedulers[old].lines("stderr")[-1], "lead|lease")
        self.assertEqual(3, self.count())
        after = self.observers[new].status()
        self.assertGreater(int(after["view"]["epoch"]), int(decided["view"]["epoch"]))
        self.assertGreater(int(decided["view"]["epoch"]), int(before["view"]["epoch"]))
        self.assertFalse(cluster.nodes(after, "SERVER", "DEAD"))

    def test_a_shard_with_one_copy_never_has_two_owners(self):
        # The server and a client hear nothing of the standby.
        self.start_all(servers=1, more=["--lease", f"{_LEASE_SECONDS}s", "--etcd-lease", "8s"],
                       hears_leader_only=True)
        old, _ = self.leading()
        options = ["--replicas", 1, "--deadline", "10m"]
        probe = outage.Probe(self, self.observers[old], tables=1, options=options)
        self.schedulers[old].signal(signal.SIGSTOP)
        new = self.await_takeover(old)
        # The server is replaced, and its table begins again.
        self.start("heir", self.server_arguments(0, self.observers[new].address))
        heir = outage.Probe(self, self.observers[new], tables=1, options=options)
        program.await_true(lambda: heir.pushes(0) > 0, f"a new owner: {heir.child}")
        acknowledged = probe.pushes(0)
        self.assertGreater(acknowledged, 0)
        # An etcd that does not answer leaves the old leader 2 s to grant leases before it ends.
        self.etcd.members[0].signal(signal.SIGSTOP)
        self.schedulers[old].signal(signal.SIGCONT)
        self.assertEqual(1, self.schedulers[old].exit_code())
        self.etcd.members[0].signal(signal.SIGCONT)
        until = time.monotonic() + _LEASE_SECONDS
        program.await_true(lambda: time.monotonic() > until or probe.pushes(0) > acknowledged,
                           "the end of any lease")
        self.assertEqual(acknowledged, probe.pushes(0), probe.child)
        self.assertTrue(probe.child.running(), probe.child)
        self.assertTrue(self.servers[0].running(), self.servers[0])

    def test_without_etcd_nobody_decides(self):
        self.start_all()
        self.assertEqual(1, self.count())
        old, before = self.leading()
        self.etcd.members[0].signal(signal.SIGKILL)
        self.etcd.members[0].exit_code()
        self.assertEqual(1, self.schedulers[old].exit_code())
        self.assertIn("lease", self.schedulers[old].lines("stderr")[-1])
        self.assertIsNone(self.leading())
        self.etcd.start(0)
        self.await_takeover(old)
        self.assertEqual(2, self.count())
        after = self.leading()[1]
        self.assertEqual(before["view"]["tables"], after["view"]["tables"])

    def test_a_member_of_etcd_dies(self):
        self.start_all(members=3)
        self.assertEqual(1, self.count())
        number = self.etcd.leader() or 0
        self.etcd.members[number].signal(signal.SIGKILL)
        # The lead may pass to the standby: etcd needs about one lease term for an election.
        self.await_status(lambda status: status, "somebody who leads", _TAKEOVER_SECONDS)
        self.assertEqual(2, self.count())


if __name__ == "__main__":
    report.main()
