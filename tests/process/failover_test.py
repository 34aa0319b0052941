# SPDX-License-Identifier: Apache-2.0
"""How long a cluster lacks a part of it: servers, workers, scheduler; killed and frozen.

As a test: it recovers, nothing is lost, and a frozen head that wakes up acknowledges nothing.
The figures are printed; they are meaningful on a quiet machine only:
  bazel build --config=opt //tests/process:failover_test
  bazel-bin/tests/process/failover_test --measure FILE.json --rounds 30 --quiet-seconds 60
"""

import os
import signal
import time

from tests import report
from tests.process import chains, cluster, figures, ledger, outage, program

_SERVERS = 3
# Three times the silence after which a node is dead (scheduler/nodes/membership_options.h).
_PAUSE_SECONDS_MAX = 3 * 2.5
_FIGURES = figures.Figures(rounds=2, quiet_seconds=3)


class _Heads(cluster.ProcessTest):
    """Producers and a probe push to tables of `_REPLICAS` replicas, while heads of chains fail."""

    _REPLICAS = 2

    def setUp(self):
        super().setUp()
        log = os.path.join(self.folder, "decisions")
        self.running = cluster.Cluster(self, servers=_SERVERS,
                                       scheduler_options=["--log-file", log])
        self.probe = outage.Probe(self, self.running, options=["--replicas", self._REPLICAS])
        self.producers = [ledger.Producer(self, self.running, "async", slot,
                                          replicas=self._REPLICAS, options=["--pause", "50ms"])
                          for slot in range(2)]
        for producer in self.producers:
            producer.await_durable(1, "first durable pushes")

    def _await_whole(self):
        return chains.await_whole(self.running)

    @staticmethod
    def _heads(status):
        """{server rank: tables of the probe whose head it is}."""
        heads = {}
        for (table, _), chain in chains.of(status).items():
            if table.startswith("probe/"):
                rank = int(chain[0][0].removeprefix("server-"))
                heads.setdefault(rank, []).append(int(table.removeprefix("probe/")))
        return heads

    def _audit(self):
        ledger.stop(self, self.running, self.producers)
        account = ledger.audit(self, self.running, self.producers, replicas=self._REPLICAS)
        print(account, flush=True)
        self.assertEqual([], account.deviations)
        self.assertGreater(account.certain, 0)

    def _fail(self, strike):
        """Applies `strike` to heads repeatedly: (outages, relative rates of other tables)."""
        outages, dips = [], []
        for number in range(_FIGURES.options.rounds):
            status = self._await_whole()
            heads = self._heads(status)
            rank = sorted(heads)[number % len(heads)]
            # Shards that have it as a replica also wait until its death is noticed.
            others = [int(table.removeprefix("probe/"))
                      for (table, _), chain in chains.of(status).items()
                      if table.startswith("probe/")
                      and f"server-{rank}" not in [server for server, _ in chain]]
            since = time.time()
            strike(rank)
            found = [self.probe.outage(table, since) for table in heads[rank]]
            outages += found
            before = self.probe.rate(others, since - 3, since)
            during = self.probe.rate(others, since, since + max(2, *found))
            if before:
                dips.append(1 - during / before)
            self._replace(rank)
        if report.speeds_count():
            self.assertLessEqual(max(outages), _PAUSE_SECONDS_MAX)
        return outages, dips

    def _replace(self, rank):
        self.running.servers[rank].signal(signal.SIGCONT)
        self.running.servers[rank].kill()
        self.running.start_server(rank)


class ThreeReplicasTest(_Heads):
    _REPLICAS = 3

    def test_head_killed(self):
        outages, _ = self._fail(lambda rank: self.running.servers[rank].kill())
        _FIGURES.add("head of three killed: until a push succeeds", outages)
        self._audit()


class ServerFailoverTest(_Heads):
    def test_head_killed(self):
        outages, dips = self._fail(lambda rank: self.running.servers[rank].kill())
        _FIGURES.add("head killed: until a push succeeds", outages)
        _FIGURES.add("head killed: throughput lost by other shards", dips or [0], "share")
        self._audit()

    def test_head_frozen(self):
        outages, dips = self._fail(lambda rank: self.running.servers[rank].signal(signal.SIGSTOP))
        _FIGURES.add("head frozen: until a push succeeds", outages)
        _FIGURES.add("head frozen: throughput lost by other shards", dips or [0], "share")
        self._audit()

    def test_a_zombie_acknowledges_nothing(self):
        heads = self._heads(self._await_whole())
        rank = next(iter(sorted(heads)))
        zombie = self.running.servers[rank]
        since = time.time()
        zombie.signal(signal.SIGSTOP)
        for table in heads[rank]:
            self.probe.outage(table, since)
        # It finds pushes in its sockets that were sent before it was declared dead.
        zombie.signal(signal.SIGCONT)
        self.assertNotEqual(0, zombie.exit_code(), zombie)
        self.running.start_server(rank)
        self._await_whole()
        for producer in self.producers:
            producer.await_durable(10, "durable pushes after the zombie")
        self._audit()

    def test_scheduler_restarts(self):
        self._await_whole()
        seconds = []
        for _ in range(_FIGURES.options.rounds):
            self.running.scheduler.kill()
            since = time.time()
            self.running.restart_scheduler()
            self.running.await_status(lambda status: status.get("view"), "an answer")
            seconds.append(time.time() - since)
        _FIGURES.add("scheduler killed and started: until it answers", seconds)
        self._audit()

    def test_without_a_scheduler(self):
        self._await_whole()
        quiet, tables = _FIGURES.options.quiet_seconds, range(6)
        self._spend(quiet)
        killed = time.time()
        before = self.probe.rate(tables, killed - quiet, killed)
        self.running.scheduler.kill()
        self._spend(quiet)
        without = self.probe.rate(tables, killed, time.time())
        _FIGURES.note("without a scheduler", seconds=quiet, before=before, without=without,
                      lost=round(1 - without / before, 4))
        self.assertGreater(without, 0)
        if report.speeds_count():
            self.assertGreater(without, before / 2)
        self.running.restart_scheduler()
        self._await_whole()
        self._audit()

    def _spend(self, seconds):
        """Runs while the probe continues."""
        until = time.time() + seconds
        program.await_true(lambda: time.time() > until or not self.probe.child.running(), "time",
                           seconds + 5)
        self.assertTrue(self.probe.child.running(), self.probe.child)


class GroupFailoverTest(cluster.ProcessTest):
    def setUp(self):
        super().setUp()
        self.running = cluster.Cluster(self, servers=2, workers=3,
                                       scheduler_options=["--placement-wait", "1s"])
        self.workers = [self._start() for _ in range(3)]
        self._await_steps()

    def _start(self):
        return self.start("ledger_worker", [ledger.WORKER], self.running.environment())

    def _await_steps(self):
        """Waits until all of them train and none is still joining."""
        for worker in self.workers:
            worker.await_line('"event":"step"', count=worker.count('"event":"step"') + 3)

    def _replace(self, number):
        """Kills a member once the view has three; each survivor's seconds until it steps again."""
        self.running.await_status(
            lambda status: [len(group["members"]) for group in status["view"]["groups"]
                            if group["state"] == "ACTIVE"] == [3], "three members")
        killed = self.workers.pop(number % 3)
        since = time.time()
        killed.kill()
        seconds = [self._stepped(worker, since) for worker in self.workers]
        self.workers.append(self._start())
        return seconds

    def test_a_member_killed(self):
        seconds = []
        for number in range(_FIGURES.options.rounds):
            self._await_steps()
            seconds += self._replace(number)
        _FIGURES.add("worker killed: until its group has made a step", seconds)

    def test_a_member_killed_while_another_comes(self):
        for number in range(_FIGURES.options.rounds):
            self._replace(number)
        self._await_steps()

    def _stepped(self, worker, since):
        """Seconds from `since` until the worker ended its first step after the pause."""
        def found():
            self.assertTrue(worker.running(), worker)
            times = [figures.seconds_of(event) for event in ledger.events(worker, "step")]
            times = [at for at in times if at > since - 1]
            gaps = [(later - sooner, later) for sooner, later in zip(times, times[1:])
                    if later > since]
            # It makes steps again, and has for a while.
            if not gaps or times[-1] < since + 1:
                return None
            return max(gaps)[1] - since
        return program.await_true(found, f"steps after a death: {worker}")


if __name__ == "__main__":
    _FIGURES.main()
