# SPDX-License-Identifier: Apache-2.0
"""No acknowledged push is lost and none is applied twice, whichever processes are killed.

Servers (heads and tails of chains), schedulers, producers and members of a group get SIGKILL at
random moments, while clients and a group keep a ledger (ledger.h), in elements of dense tables and
in rows of sparse ones, which grow. Where two schedulers share an etcd, processes are also stopped
for a while, as those of a machine that is suspended, and go on when others may have taken their
places. A server is killed or stopped only when every chain is whole again: r = 2 promises to
survive r - 1 deaths at a time. After some of this a server is drained, so that its shards move, and
comes back.

The long version, which prints its account:
  bazel build --config=opt //tests/process:ledger_test
  bazel-bin/tests/process/ledger_test --kills 200 --seed 7 TwoSchedulersTest
"""

import argparse
import os
import random
import signal
import sys
import time
import unittest

from tests import report
from tests.process import chains, cluster, etcd, ledger, program

_SERVERS = 3
_WORKERS = 3
# Longest time for which a process is stopped; from 2.5 s on it is declared dead.
_STOP_SECONDS = 6
# As the default of the scheduler's --etcd-lease, etcd's own margin, the standby's next attempt, and
# a slow machine's margin.
_TAKEOVER_SECONDS = 30
# Pause between two kills, in addition to the wait for whole chains.
_PAUSE_SECONDS = 0.6
# Kills between two drains.
_KILLS_PER_DRAIN = 8
_DRAIN_SECONDS = 120

_kills, _seed = 16, 1


class LedgerTest(cluster.ProcessTest):
    """With one scheduler, which writes its log to a file."""

    # Relative frequency of what happens.
    weights = {"kill_head": 4, "kill_tail": 4, "kill_scheduler": 2, "kill_producer": 3,
               "kill_worker": 2}

    def start_cluster(self):
        log = os.path.join(self.folder, "decisions")
        return cluster.Cluster(
            self, servers=_SERVERS, workers=_WORKERS, loops=2,
            scheduler_options=["--log-file", log, "--placement-wait", "1s"])

    def setUp(self):
        super().setUp()
        self.random = random.Random(_seed)
        self.running = self.start_cluster()
        self.producers = [
            ledger.Producer(self, self.running, contract, slot, rows=rows)
            for contract in ("async", "buffered:2") for rows in (False, True) for slot in range(2)]
        self.workers = [self._start_worker() for _ in range(_WORKERS)]
        self.fallen_workers = []
        for producer in self.producers:
            producer.await_durable(1, "first durable pushes")
        for worker in self.workers:
            worker.await_line('"event":"step"')

    def _start_worker(self):
        return self.start("ledger_worker", [ledger.WORKER], self.running.environment())

    def test_kills(self):
        done = dict.fromkeys(self.weights, 0)
        drains = 0
        started = time.monotonic()
        while sum(done.values()) < _kills:
            what = self.random.choices(list(self.weights), self.weights.values())[0]
            print(f"{time.monotonic() - started:.1f} s: {what}", flush=True)
            getattr(self, f"_{what}")()
            done[what] += 1
            # Time passes in small pieces, so that a failed process is noticed.
            self._look(self.random.random() * 2 * _PAUSE_SECONDS)
            if sum(done.values()) % _KILLS_PER_DRAIN == 0:
                print(f"{time.monotonic() - started:.1f} s: drain of a server", flush=True)
                self._drain_server()
                drains += 1
        self._progress("in the end")
        ledger.stop(self, self.running, self.producers)
        account = ledger.audit(self, self.running, self.producers)
        steps = self._steps()
        print(f"seed {_seed}: {sum(done.values())} faults {done}, {drains} drains in "
              f"{time.monotonic() - started:.0f} s; {account}; {steps} steps of the group",
              flush=True)
        self.assertEqual([], account.deviations)
        self.assertEqual((0, 0), (account.lost, account.doubled))
        self.assertGreater(account.certain, 0)

    def _look(self, seconds, but=None):
        """Checks that no producer or member has failed by itself, but this one."""
        until = time.monotonic() + seconds
        everybody = [child for child in
                     (*(producer.child for producer in self.producers), *self.workers)
                     if child is not but]
        program.await_true(
            lambda: time.monotonic() > until or not all(child.running() for child in everybody),
            "time", seconds + 1)
        for child in everybody:
            self.assertTrue(child.running(), child)

    def _progress(self, what):
        for producer in self.producers:
            producer.await_durable(3, f"durable pushes {what}")
        before = self._steps()
        program.await_true(lambda: self._steps() > before,
                           f"steps of the group {what}: {self.workers[0]}")

    def _steps(self):
        return max(int(event["number"]) for worker in [*self.workers, *self.fallen_workers]
                   for event in ledger.events(worker, "step")[-1:])

    def _kill_head(self):
        self._kill_server(0)

    def _kill_tail(self):
        self._kill_server(-1)

    def _choose_server(self, position):
        """The rank of one at this position of a chain, when all chains are whole."""
        status = chains.await_whole(self.running)
        return int(self.random.choice(chains.servers_of(status, position)).removeprefix("server-"))

    def _kill_server(self, position):
        rank = self._choose_server(position)
        self.running.servers[rank].kill()
        self.running.start_server(rank)

    def _drain_server(self):
        chains.await_whole(self.running)
        rank = self.random.randrange(_SERVERS)
        self.running.servers[rank].signal(signal.SIGTERM)
        self.assertEqual(0, self.running.servers[rank].exit_code(_DRAIN_SECONDS),
                         self.running.servers[rank])
        self.running.start_server(rank)

    def _kill_scheduler(self):
        self.running.scheduler.kill()
        self._look(self.random.random())
        self.running.restart_scheduler()

    def _kill_producer(self):
        producer = self.random.choice(self.producers)
        producer.kill()
        producer.start()

    def _kill_worker(self):
        index = self._choose_worker()
        self.workers[index].kill()
        self._replace_worker(index)

    def _replace_worker(self, index):
        self.fallen_workers.append(self.workers[index])
        self.workers[index] = self._start_worker()

    def _choose_worker(self):
        """Never a second one at a time: the group needs a survivor that remembers the step."""
        self.running.await_status(self._is_complete, "all workers in the group")
        return self.random.randrange(_WORKERS)

    @staticmethod
    def _is_complete(status):
        return len(cluster.nodes(status, "WORKER")) == _WORKERS and all(
            len(group["members"]) == _WORKERS for group in status["view"]["groups"]
            if group["state"] == "ACTIVE")


@unittest.skipIf(etcd.MISSING, etcd.MISSING)
class TwoSchedulersTest(LedgerTest):
    """With two schedulers, and processes that are also stopped for a while."""

    weights = {**LedgerTest.weights, "stop_head": 2, "stop_tail": 2, "stop_scheduler": 1,
               "stop_worker": 1}

    def start_cluster(self):
        log = ["--etcd", ",".join(etcd.Etcd(self).addresses)]
        self.ports = [None, *etcd.free_ports(1)]
        running = cluster.Cluster(
            self, servers=_SERVERS, workers=_WORKERS, loops=2,
            scheduler_options=[*log, "--placement-wait", "1s"], standby_ports=self.ports[1:])
        self.ports[0] = running.port
        # The one that leads, and the other.
        self.schedulers = [running.scheduler,
                           running.start_standby(self.ports[1], _TAKEOVER_SECONDS)]
        return running

    def _kill_scheduler(self):
        if self.random.random() < 0.5:
            self.schedulers[1].kill()
            self._look(self.random.random())
        else:
            self.schedulers[0].kill()
            self._swap_schedulers()
        self.schedulers[1] = self.running.start_standby(self.ports[1], _TAKEOVER_SECONDS)

    def _swap_schedulers(self):
        self.schedulers[1].await_line("leads", _TAKEOVER_SECONDS)
        self.schedulers.reverse()
        self.ports.reverse()

    def _stop(self, child):
        child.signal(signal.SIGSTOP)
        self._look(self.random.random() * _STOP_SECONDS, but=child)
        child.signal(signal.SIGCONT)

    def _stop_head(self):
        self._stop_server(0)

    def _stop_tail(self):
        self._stop_server(-1)

    def _stop_server(self, position):
        # A server that was declared dead ends by itself; chains.await_whole restarts it.
        self._stop(self.running.servers[self._choose_server(position)])

    def _stop_scheduler(self):
        leader, standby = self.schedulers
        self._stop(leader)
        # The scheduler leads on, or has ended because the standby has taken over.
        program.await_true(
            lambda: not leader.running() or (not standby.count('"leads"')
                                             and self.running.status() is not None),
            "one scheduler that leads", _TAKEOVER_SECONDS)
        if not leader.running():
            self._swap_schedulers()
            self.schedulers[1] = self.running.start_standby(self.ports[1], _TAKEOVER_SECONDS)

    def _stop_worker(self):
        index = self._choose_worker()
        worker = self.workers[index]
        self._stop(worker)

        def is_settled():
            if not worker.running():
                return True
            status = self.running.status()
            return status is not None and self._is_complete(status) and worker.pid in {
                int(node["process_id"]) for node in cluster.nodes(status, "WORKER")}

        program.await_true(is_settled, f"a member again, or the end of {worker}")
        if not worker.running():
            self._replace_worker(index)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--kills", type=int, default=_kills)
    arguments.add_argument("--seed", type=int, default=_seed)
    options, rest = arguments.parse_known_args()
    _kills, _seed = options.kills, options.seed
    report.main(argv=[sys.argv[0], *rest])
