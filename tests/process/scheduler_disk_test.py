# SPDX-License-Identifier: Apache-2.0
"""A scheduler whose disk is slow, full or read-only, or whose log others want, while nodes train."""

import os
import shlex
import signal
import stat
import time

from tests import report
from tests.process import chains, cluster, ledger, program

_FAULTS = program.built("tests/process/libdisk_faults.so")
_SLOW_SECONDS = 12
_LEASE_SECONDS = 4
# Failed writes, after each of which the file of the log is replaced.
_REPLACEMENTS = 8


class SchedulerDiskTest(cluster.ProcessTest):
    def _begin(self, replicas):
        self.replicas = replicas
        self.fault = os.path.join(self.folder, "fault")
        self.log = os.path.join(self.folder, "decisions")
        wrapper = os.path.join(self.folder, "scheduler_with_faults")
        with open(wrapper, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n"
                       f"COVEY_DISK_FAULT={shlex.quote(self.fault)} COVEY_DISK_OF=/decisions "
                       f"LD_PRELOAD={shlex.quote(os.path.abspath(_FAULTS))} "
                       f"exec {shlex.quote(os.path.abspath(cluster.SCHEDULER))} \"$@\"\n")
        os.chmod(wrapper, stat.S_IRWXU)
        self.running = cluster.Cluster(
            self, servers=2, scheduler_program=wrapper,
            scheduler_options=["--log-file", self.log, "--lease", f"{_LEASE_SECONDS}s"])
        self.producers = [ledger.Producer(self, self.running, "async", slot, replicas=replicas,
                                          options=["--pause", "50ms"]) for slot in range(2)]
        self._train("at first")
        self.assertEqual(1, self.running.count())

    def _strike(self, name):
        with open(self.fault + ".new", "w", encoding="ascii") as file:
            file.write(name)
        os.rename(self.fault + ".new", self.fault)

    def _train(self, when):
        for producer in self.producers:
            producer.await_durable(20, f"durable pushes {when}")

    def _finish(self, dead=()):
        """All nodes live but those that were killed, and nothing was lost."""
        chains.await_whole(self.running)
        status = self.running.status()
        self.assertEqual(2, len(cluster.nodes(status, "SERVER")))
        self.assertEqual(list(dead), [node["name"] for node in status["view"]["nodes"]
                                      if node["state"] == "DEAD"])
        ledger.stop(self, self.running, self.producers)
        account = ledger.audit(self, self.running, self.producers, replicas=self.replicas)
        print(account, flush=True)
        self.assertEqual([], account.deviations)
        self.assertEqual((0, 0), (account.lost, account.doubled))
        self.assertGreater(account.certain, 0)

    def test_a_slow_disk_kills_nobody(self):
        self._begin(replicas=2)
        self._strike("slow")
        counted = 1
        until = time.monotonic() + _SLOW_SECONDS
        while time.monotonic() < until:
            # Each is several decisions: it joins, looks for its table, and leaves.
            counted += 1
            self.assertEqual(counted, self.running.count())
        self.assertLess(counted, 2 + _SLOW_SECONDS, "the disk was not slow")
        self._train("with a slow disk")
        # What it has decided and answered is in its log.
        self.running.scheduler.kill()
        self.running.restart_scheduler()
        self.assertEqual(counted + 1, self.running.count())
        os.unlink(self.fault)
        self._finish()

    def _await_refusal(self, fault, reason):
        """The disk has this fault from now on, and a new client is told."""
        self._strike(fault)
        refused = self.run_to_end("counter", [cluster.COUNTER, self.running.address, self.running.job])
        self.assertNotEqual(0, refused.code, refused)
        refused.await_line(f"cannot write its log.*{reason}; check the folder, its permissions and free space")

    def _heal(self):
        """It goes on by itself, with what it had decided and what was refused."""
        self.assertTrue(self.running.scheduler.running(), self.running.scheduler)
        self.assertEqual(1, len(ledger.events(self.running.scheduler, "log_not_written")))
        os.unlink(self.fault)
        self.running.scheduler.await_line("log_written_again")
        self.assertEqual(2, self.running.count())

    def test_a_full_disk_stops_decisions_and_no_training(self):
        # The tables have one copy, so servers serve them only within their leases.
        self._begin(replicas=1)
        self._await_refusal("full", "No space left on device")
        until = time.monotonic() + 2 * _LEASE_SECONDS
        while time.monotonic() < until:
            self._train("while the disk is full")
        self._heal()
        # What it decides afterwards is in its log.
        self.running.scheduler.kill()
        self.running.restart_scheduler()
        self.assertEqual(3, self.running.count())
        self._train("afterwards")
        self._finish()

    def test_a_server_that_dies_waits_for_a_disk_that_became_read_only(self):
        self._begin(replicas=2)
        self._await_refusal("read-only", "Read-only file system")
        self._train("while the disk is read-only")
        self.running.servers[1].kill()
        until = time.monotonic() + 2 * _LEASE_SECONDS
        while time.monotonic() < until:
            self.assertIsNone(self.running.status())
        self._heal()
        self._train("afterwards")
        self._finish(dead=["server-1"])

    def _start_rivals(self):
        """Like a supervisor that starts a second scheduler on this log again and again."""
        command = shlex.join([os.path.abspath(cluster.SCHEDULER), "--job", self.running.job,
                              "--servers", "2", "--log-file", self.log])
        return self.start("rivals", ["sh", "-c", f"while :; do {command}; echo ended with $?; done"])

    def test_a_second_scheduler_on_its_log_ends_and_says_why(self):
        # With one copy of each table, two schedulers would soon give a shard to two servers.
        self._begin(replicas=1)
        rivals = self._start_rivals()
        for number in range(1, _REPLACEMENTS + 1):
            self._strike("full")
            counter = self.start("counter", [
                cluster.COUNTER, self.running.address, self.running.job])
            self.running.scheduler.await_line("log_not_written", count=number)
            rivals.await_line("ended with", count=rivals.count("ended with") + 3)
            os.unlink(self.fault)
            self.running.scheduler.await_line("log_written_again", count=number)
            self.assertEqual(0, counter.exit_code(), counter)
        # It is stopped, and keeps its log.
        self.running.scheduler.signal(signal.SIGSTOP)
        rivals.await_line("ended with", count=rivals.count("ended with") + 5)
        self.running.scheduler.signal(signal.SIGCONT)
        self.assertEqual(_REPLACEMENTS + 2, self.running.count())
        rivals.kill()
        self.assertEqual({"ended with 1"}, set(rivals.lines("stdout")))
        said = [line for line in rivals.lines("stderr") if '"level":"error"' in line]
        print(f"{rivals.count('ended with')} rivals", flush=True)
        self.assertGreaterEqual(len(said), rivals.count("ended with"))
        for line in said:
            self.assertIn("is in use by another scheduler: stop that one or name another file", line)
        self.assertEqual(0, rivals.count('listening|"event":"decision"'), rivals)
        self._finish()


if __name__ == "__main__":
    report.main()
