# SPDX-License-Identifier: Apache-2.0
"""A scheduler whose disk is slow, while others train, come and go."""

import os
import shlex
import stat
import time

from tests import report
from tests.process import chains, cluster, ledger, program

_SLOW_DISK = program.built("tests/process/libslow_disk.so")
_SLOW_SECONDS = 12


class SchedulerDiskTest(cluster.ProcessTest):
    def setUp(self):
        super().setUp()
        self.slow = os.path.join(self.folder, "slow")
        self.log = os.path.join(self.folder, "decisions")
        wrapper = os.path.join(self.folder, "scheduler_with_slow_disk")
        with open(wrapper, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n"
                       f"COVEY_DISK_IS_SLOW_WHILE={shlex.quote(self.slow)} COVEY_DISK_OF=/decisions "
                       f"LD_PRELOAD={shlex.quote(os.path.abspath(_SLOW_DISK))} "
                       f"exec {shlex.quote(os.path.abspath(cluster.SCHEDULER))} \"$@\"\n")
        os.chmod(wrapper, stat.S_IRWXU)
        self.running = cluster.Cluster(self, servers=2, scheduler_program=wrapper,
                                       scheduler_options=["--log-file", self.log])
        self.producers = [ledger.Producer(self, self.running, "async", slot,
                                          options=["--pause", "50ms"]) for slot in range(2)]
        self._train("at first")

    def _train(self, when):
        for producer in self.producers:
            producer.await_durable(20, f"durable pushes {when}")

    def _finish(self):
        """Everybody lives, and nothing was lost."""
        chains.await_whole(self.running)
        status = self.running.status()
        self.assertEqual(2, len(cluster.nodes(status, "SERVER")))
        self.assertEqual([], [node["name"] for node in status["view"]["nodes"] if node["state"] == "DEAD"])
        ledger.stop(self, self.running, self.producers)
        account = ledger.audit(self, self.running, self.producers)
        print(account, flush=True)
        self.assertEqual([], account.deviations)
        self.assertEqual((0, 0), (account.lost, account.doubled))
        self.assertGreater(account.certain, 0)

    def test_a_slow_disk_kills_nobody(self):
        self.assertEqual(1, self.running.count())
        with open(self.slow, "w", encoding="ascii"):
            pass
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
        os.unlink(self.slow)
        self._finish()


if __name__ == "__main__":
    report.main()
