# SPDX-License-Identifier: Apache-2.0
"""The previous release and the present programs in one job, and a live job that is upgraded.

Producers of both versions and a group keep a ledger (tests/process/ledger.h) while servers, the
scheduler and workers are exchanged one by one: no push may fail, be lost or be doubled. A producer
or member ends with an error when one of its pushes fails.

It takes about three minutes, and prints its figures; times are meaningful on a quiet machine only:
  tests/upgrade/previous_release FOLDER && bazel build --config=opt //tests/soak:upgrade_test
  COVEY_PREVIOUS_RELEASE=FOLDER bazel-bin/tests/soak/upgrade_test
"""

import datetime
import itertools
import json
import os
import signal
import time
import unittest

from tests import report
from tests.process import chains, cluster, etcd, ledger, program
from tests.upgrade.release import MISSING, PRESENT, PREVIOUS

_SERVERS, _WORKERS = 3, 3
_DRAIN_SECONDS = 120
# The lease, etcd's own margin, the standby's next attempt, and a slow machine's margin.
_TAKEOVER_SECONDS = 30


def drain(test, child):
    """Asks a server or worker to leave, or a scheduler to end, and waits for it."""
    child.signal(signal.SIGTERM)
    test.assertEqual(0, child.exit_code(_DRAIN_SECONDS), child)


def kill(_, child):
    child.kill()


def times(child, event):
    """When it logged such events, in seconds since 1970."""
    return [datetime.datetime.fromisoformat(found["time"]).timestamp()
            for found in ledger.events(child, event)]


def assert_exact(test, running, producers):
    """Each push of these producers, which have lived until the end, is there, and once.

    A buffered push counts as two where a flush has applied it without a partner (ledger.py).
    """
    account = ledger.audit(test, running, producers)
    print(f"{producers[0].contract}: {account}", flush=True)
    test.assertEqual([], account.deviations)
    test.assertEqual((0, 0, 0), (account.lost, account.doubled, account.uncertain))
    test.assertGreater(account.certain, 0)


class LiveJob:
    """Producers and a group that push all the time; its processes can be exchanged one by one."""

    def __init__(self, test, running, members):
        self.test, self.running = test, running
        # Two producers in each table: one of each version.
        self.producers = [
            ledger.Producer(test, running, contract, slot, rows=rows, client=release.ledger_client)
            for contract in ("async", "buffered:2") for rows in (False, True)
            for slot, release in enumerate((PREVIOUS, PRESENT))]
        self.workers, self.former_workers = [], []
        for _ in range(_WORKERS):
            self.workers.append(self._start_worker(members))
        self.await_progress("at first")

    def _start_worker(self, release):
        return self.test.start("ledger_worker", [release.ledger_worker], self.running.environment())

    def await_progress(self, what):
        """Further pushes of all producers, and a further step."""
        for producer in self.producers:
            producer.await_durable(3, f"durable pushes {what}")
        before = self._steps()
        program.await_true(lambda: self._steps() > before or not self._healthy(),
                           f"a step of the group {what}: {self.workers[0]}")
        for child in [*(producer.child for producer in self.producers), *self.workers]:
            self.test.assertTrue(child.running(), child)

    def _healthy(self):
        return all(worker.running() for worker in self.workers)

    def _steps(self):
        return max([0, *(int(event["number"]) for worker in [*self.workers, *self.former_workers]
                         for event in ledger.events(worker, "step")[-1:])])

    def exchange_server(self, rank, release, end):
        chains.await_whole(self.running)
        former = self.running.servers[rank]
        end(self.test, former)
        # Replicas of both versions hold the same bits.
        self.test.assertEqual(0, former.count("replica_unfit"), former)
        self.running.server_program = release.server
        self.running.start_server(rank)
        chains.await_whole(self.running)

    def exchange_scheduler(self, release, end):
        end(self.test, self.running.scheduler)
        self.running.scheduler_program = release.scheduler
        self.running.restart_scheduler()
        chains.await_whole(self.running)

    def exchange_worker(self, index, release, end):
        self._await_members()
        end(self.test, self.workers[index])
        self.former_workers.append(self.workers[index])
        self.workers[index] = self._start_worker(release)
        self._await_members()

    def _await_members(self):
        """All members are in one group, so that one of them can go."""
        pids = {worker.pid for worker in self.workers}

        def complete(status):
            alive = {int(node["process_id"]) for node in cluster.nodes(status, "WORKER")}
            return alive == pids and [len(group["members"]) for group in status["view"]["groups"]
                                      if group["state"] == "ACTIVE"] == [_WORKERS]
        self.running.await_status(complete, "all workers in the group")

    def exchange_all(self, release, end):
        """In the order of OPERATIONS.md, "Upgrade"."""
        for rank in range(_SERVERS):
            self.step(f"server {rank}", release, end,
                      lambda rank=rank: self.exchange_server(rank, release, end))
        self.step("scheduler", release, end, lambda: self.exchange_scheduler(release, end))
        for index in range(_WORKERS):
            self.step(f"worker {index}", release, end,
                      lambda index=index: self.exchange_worker(index, release, end))

    def step(self, what, release, end, exchange):
        """Exchanges something, and prints how long it took and how long pushes waited."""
        began = time.time()
        exchange()
        ended = time.time()
        self.await_progress(f"after {what}")
        pushes = max(self._longest(producer.child, "sending", began, ended)
                     for producer in self.producers)
        steps = max(self._longest(worker, "step", began, ended)
                    for worker in [*self.workers, *self.former_workers])
        print(f"{what}, {end.__name__}, to {release.name}: {ended - began:.1f} s; longest time "
              f"without an acknowledged push of a producer {pushes:.2f} s, without a step "
              f"{steps:.2f} s", flush=True)

    @staticmethod
    def _longest(child, event, began, ended):
        """The longest time between two such events, of which some lies between these moments.

        A batch of pushes is sent when all of the one before are acknowledged.
        """
        logged = times(child, event)
        return max([0.0, *(after - before for before, after in zip(logged, logged[1:])
                           if after > began and before < ended)])

    def finish(self):
        """Ends everything, and checks the ledger."""
        test = self.test
        self.await_progress("in the end")
        for worker in self.workers:
            drain(test, worker)
        ledger.stop(test, self.running, self.producers)
        pushes = sum(producer.sent() for producer in self.producers)
        print(f"{pushes} pushes of {len(self.producers)} producers, 0 failed; {self._steps()} steps "
              "of the group", flush=True)
        for contract in sorted({producer.contract for producer in self.producers}):
            assert_exact(test, self.running, [
                producer for producer in self.producers if producer.contract == contract])


@unittest.skipIf(MISSING, MISSING)
class UpgradeTest(cluster.ProcessTest):

    def start_cluster(self, *log, **more):
        return cluster.Cluster(
            self, servers=_SERVERS, workers=_WORKERS, loops=2,
            scheduler_options=["--placement-wait", "1s", *log],
            scheduler_program=PREVIOUS.scheduler, server_program=PREVIOUS.server, **more)

    def start_job(self):
        return LiveJob(self, self.start_cluster(
            "--log-file", os.path.join(self.folder, "decisions")), PREVIOUS)

    def test_by_drain_and_back(self):
        job = self.start_job()
        job.exchange_all(PRESENT, drain)
        job.exchange_all(PREVIOUS, drain)
        job.finish()

    def test_by_kill_and_back(self):
        job = self.start_job()
        job.exchange_all(PRESENT, kill)
        job.exchange_all(PREVIOUS, kill)
        job.finish()

    @unittest.skipIf(etcd.MISSING, etcd.MISSING)
    def test_of_schedulers_with_a_standby(self):
        """The standby first; it takes over from a leader of the other version."""
        log = ["--etcd", ",".join(etcd.Etcd(self).addresses)]
        ports = [None, *etcd.free_ports(1)]
        running = self.start_cluster(*log, standby_ports=ports[1:])
        ports[0] = running.port

        def start_scheduler(release, port):
            running.scheduler_program = release.scheduler
            return running.start_standby(port, _TAKEOVER_SECONDS)

        leader, standby = running.scheduler, start_scheduler(PREVIOUS, ports[1])
        job = LiveJob(self, running, PREVIOUS)
        for release, end in ((PRESENT, drain), (PREVIOUS, kill)):

            def exchange_standby():
                nonlocal standby
                end(self, standby)
                standby = start_scheduler(release, ports[1])

            def exchange_leader():
                nonlocal leader, standby
                end(self, leader)
                standby.await_line("leads", _TAKEOVER_SECONDS)
                leader, standby = standby, start_scheduler(release, ports[0])
                ports.reverse()
                chains.await_whole(running)

            job.step("standby", release, end, exchange_standby)
            job.step("leader", release, end, exchange_leader)
        job.finish()


@unittest.skipIf(MISSING, MISSING)
class MixedTest(cluster.ProcessTest):
    """Processes of both versions that stay."""

    def covey(self, release, *words):
        run = self.run_to_end(f"covey {words[0]}", [release.covey, *words])
        self.assertEqual(0, run.code, run)
        return "\n".join(run.lines("stdout"))

    def produce(self, running, release):
        """Pushes to a dense and a sparse table until both have some durable pushes."""
        producers = [ledger.Producer(self, running, "async", 0, rows=rows,
                                     client=release.ledger_client) for rows in (False, True)]
        for producer in producers:
            producer.await_durable(20, "durable pushes")
        return producers

    def test_each_combination(self):
        for scheduler, server, worker in itertools.product((PREVIOUS, PRESENT), repeat=3):
            if scheduler == server == worker:
                continue
            with self.subTest(scheduler=scheduler.name, server=server.name, worker=worker.name):
                self.run_together(scheduler, server, worker)

    def run_together(self, scheduler, server, worker):
        running = cluster.Cluster(
            self, servers=2, workers=2, scheduler_program=scheduler.scheduler,
            server_program=server.server)
        workers = [self.start("ledger_worker", [worker.ledger_worker], running.environment())
                   for _ in range(2)]
        producers = self.produce(running, worker)
        for member in workers:
            member.await_line('"event":"step"', count=20)
        for release in (PREVIOUS, PRESENT):
            self.look_with(release, running)
        for member in workers:
            drain(self, member)
        ledger.stop(self, running, producers)
        assert_exact(self, running, producers)
        running.stop()

    def look_with(self, release, running):
        """Commands of either version ask this scheduler."""
        place = ["--scheduler", running.address]
        status = json.loads(self.covey(release, "status", *place, "-o", "json"))
        self.assertEqual([2, 2], [len(cluster.nodes(status, role)) for role in ("SERVER", "WORKER")])
        self.assertIn("server-1", self.covey(release, "status", *place))
        self.assertIn("ledger/async/rows", self.covey(release, "tables", *place))
        self.assertIn("server-1", self.covey(release, "events", *place))

    def test_replicas_of_both_versions_hold_the_same_bits(self):
        running = cluster.Cluster(self, servers=2, groups=2, server_program=PREVIOUS.server)
        drain(self, running.servers[1])
        running.server_program = PRESENT.server
        running.start_server(1)
        running.await_status(lambda status: len(cluster.nodes(status, "SERVER")) == 2, "servers")
        members = [
            self.start(f"synthetic-{rank}", [
                release.synthetic, "--contract", "async", "--steps", 100, "--adam", "--spread", 1,
                "--step-noise", 0.5, "--group-batch", 8, "--tensor-kib", 64,
            ], running.environment(rank)) for rank, release in enumerate((PREVIOUS, PRESENT))]
        for member in members:
            self.assertEqual(0, member.exit_code(), member)
        status = chains.await_whole(running)
        # Heads of each version, whose records the other one has applied.
        self.assertEqual(["server-0", "server-1"], chains.servers_of(status, 0))
        # Each 64th record has a digest of the content.
        for server in running.servers:
            self.assertEqual(0, server.count("replica_unfit"), server)
        before = self.exported(running, "before")
        self.assertGreater(len(before), 8 * 64 * 1024)
        running.servers[0].kill()
        running.await_status(lambda status: chains.servers_of(status, 0) == ["server-1"],
                             "its replicas")
        self.assertEqual(before, self.exported(running, "after"))

    def exported(self, running, name):
        """All values as a file, after its head."""
        out = os.path.join(self.folder, f"{name}.safetensors")
        self.covey(PRESENT, "export", "--scheduler", running.address, "--job", running.job,
                   "--out", out)
        with open(out, "rb") as file:
            return file.read()

    def test_a_job_goes_on_from_the_files_of_the_other_version(self):
        for writer, reader in ((PREVIOUS, PRESENT), (PRESENT, PREVIOUS)):
            with self.subTest(writer=writer.name, reader=reader.name):
                self.go_on(writer, reader)

    def go_on(self, writer, reader):
        """Everything is killed after a snapshot; log and store stay."""
        store = ["--store", os.path.join(self.folder, f"store-{writer.name}")]
        log = ["--log-file", os.path.join(self.folder, f"log-{writer.name}")]
        running = cluster.Cluster(
            self, servers=2, scheduler_options=[*store, *log],
            server_options=store, scheduler_program=writer.scheduler, server_program=writer.server)
        producers = self.produce(running, writer)
        ledger.stop(self, running, producers)
        self.covey(writer, "snapshot", "create", "--scheduler", running.address)
        for child in [running.scheduler, *running.servers]:
            child.kill()
        self.covey(reader, "snapshot", *store, "verify")
        running.scheduler_program, running.server_program = reader.scheduler, reader.server
        running.restart_scheduler()
        chains.await_whole(running)
        assert_exact(self, running, producers)
        running.stop()


if __name__ == "__main__":
    report.main()
