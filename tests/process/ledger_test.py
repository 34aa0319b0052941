# SPDX-License-Identifier: Apache-2.0
"""No acknowledged push is lost and none is applied twice, whichever processes are killed.

Servers (heads and tails of chains), the scheduler, producers and members of a group get SIGKILL at
random moments, while clients and a group keep a ledger (ledger.h), in elements of dense tables and
in rows of sparse ones, which grow. A server is killed only when every chain is whole again: r = 2
promises to survive r - 1 deaths at a time. After some kills a server is drained, so that its shards
move, and comes back.

The long version, which prints its account:
  bazel build --config=opt //tests/process:ledger_test
  bazel-bin/tests/process/ledger_test --kills 200 --seed 7
"""

import argparse
import os
import random
import signal
import sys
import time

from tests import report
from tests.process import chains, cluster, ledger, program

_SERVERS = 3
_WORKERS = 3
# Relative frequency of kills per role.
_WEIGHTS = {"head": 4, "tail": 4, "scheduler": 2, "producer": 3, "worker": 2}
# Pause between two kills, in addition to the wait for whole chains.
_PAUSE_SECONDS = 0.6
# Kills between two drains.
_KILLS_PER_DRAIN = 8
_DRAIN_SECONDS = 120

_kills, _seed = 16, 1


class LedgerTest(cluster.ProcessTest):
    def setUp(self):
        super().setUp()
        self.random = random.Random(_seed)
        log = os.path.join(self.folder, "decisions")
        self.running = cluster.Cluster(
            self, servers=_SERVERS, workers=_WORKERS, loops=2,
            scheduler_options=["--log-file", log, "--placement-wait", "1s"])
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
        deaths = dict.fromkeys(_WEIGHTS, 0)
        drains = 0
        started = time.monotonic()
        while sum(deaths.values()) < _kills:
            role = self.random.choices(list(_WEIGHTS), _WEIGHTS.values())[0]
            print(f"{time.monotonic() - started:.1f} s: kill of a {role}", flush=True)
            getattr(self, f"_kill_{role}")()
            deaths[role] += 1
            # Time passes in small pieces, so that a failed process is noticed.
            self._look(self.random.random() * 2 * _PAUSE_SECONDS)
            if sum(deaths.values()) % _KILLS_PER_DRAIN == 0:
                print(f"{time.monotonic() - started:.1f} s: drain of a server", flush=True)
                self._drain_server()
                drains += 1
        self._progress("after the last kill")
        ledger.stop(self, self.running, self.producers)
        account = ledger.audit(self, self.running, self.producers)
        steps = self._steps()
        print(f"seed {_seed}: {sum(deaths.values())} kills {deaths}, {drains} drains in "
              f"{time.monotonic() - started:.0f} s; {account}; {steps} steps of the group",
              flush=True)
        self.assertEqual([], account.deviations)
        self.assertEqual((0, 0), (account.lost, account.doubled))
        self.assertGreater(account.certain, 0)

    def _look(self, seconds):
        """Checks that no producer or member has failed by itself."""
        until = time.monotonic() + seconds
        everybody = [*(producer.child for producer in self.producers), *self.workers]
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

    def _kill_server(self, position):
        status = chains.await_whole(self.running)
        name = self.random.choice(chains.servers_of(status, position))
        rank = int(name.removeprefix("server-"))
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
        # Never kills two members at a time: the group needs a survivor that remembers the step.
        self.running.await_status(
            lambda status: len(cluster.nodes(status, "WORKER")) == _WORKERS
            and all(len(group["members"]) == _WORKERS for group in status["view"]["groups"]
                    if group["state"] == "ACTIVE"), "all workers in the group")
        index = self.random.randrange(_WORKERS)
        self.workers[index].kill()
        self.fallen_workers.append(self.workers[index])
        self.workers[index] = self._start_worker()


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--kills", type=int, default=_kills)
    arguments.add_argument("--seed", type=int, default=_seed)
    options, rest = arguments.parse_known_args()
    _kills, _seed = options.kills, options.seed
    report.main(argv=[sys.argv[0], *rest])
