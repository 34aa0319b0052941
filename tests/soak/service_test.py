# SPDX-License-Identifier: Apache-2.0
"""A job that runs like a service for hours, while processes die, drain, come and leave.

A scheduler with a log file, 3 servers with a store, 4 workers in 2 groups and 5 producers, all of
which keep ledgers. Events follow each other all the time, in an order that the seed gives. At the
end nothing has grown (flatness.py), the ledger is exact, and each line of warning or error has its
cause in an event (causes.py). A program that leaks on purpose runs beside the others; the judge
must find it, and nothing else.

COVEY_SOAK_MINUTES (240): length; below 30 nothing but that leak is judged, since processes warm up.
COVEY_SOAK_SEED (1): of the events. Writes memory.svg and figures.json to the outputs of the test.
"""

import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request

from tests import report
from tests.process import chains, cluster, ledger, program, store_cluster
from tests.soak import causes, findings, flatness, sampler

_MINUTES = float(os.environ.get("COVEY_SOAK_MINUTES") or 240)
_SEED = int(os.environ.get("COVEY_SOAK_SEED") or 1)
_JUDGED_MINUTES = 30
_VISITOR = program.built("tests/soak/table_visitor")
_LEAKING = pathlib.Path(__file__).with_name("leaking_program.py")

_SERVERS, _GROUPS, _WORKERS_PER_GROUP = 3, 2, 2
# Those that events restart; the others live all the time.
_RESTARTED_SERVERS, _RESTARTED_WORKERS, _RESTARTED_PRODUCER = (1, 2), (1, 3), 1
_PAUSE_SECONDS = 6
_SAMPLE_SECONDS = 5
_DRAIN_SECONDS = 180
_FILL_TABLES, _FILL_SECONDS = 100, 180
_POLL_SECONDS = 0.3
_LINES_MAX = 400
_SNAPSHOTS_KEPT = 3
# One round of events, in random order; a name is that of a method.
_ROUND = ["kill_server", "drain_server", "kill_worker", "drain_worker", "kill_producer",
          "make_snapshot", "make_snapshot", "visit", "visit", "visit", "count", "look", "look"]

_OF_GAUGES = {
    # From the 16,384th push of a producer to a shard on, each of the 4,096 pushes that a history
    # remembers takes 2 bytes more in a snapshot. The slowest producer gets there in the second hour,
    # and a snapshot has 11 % more then.
    "store bytes": flatness.Allowance(share=0.15),
    "store files": flatness.Allowance(share=0.1, amount=2),
    "shared memory files": flatness.Allowance(amount=0.5),
    "nodes listed": flatness.Allowance(share=0.02, amount=3),
    "tables": flatness.Allowance(amount=0.5),
}
# The limits of scheduler/log/file_log.h, with a record more, of common/cluster/limits.h, and of
# scheduler/nodes/departed_nodes.h.
_LOG_BYTES_MAX = (64 << 20) + (4 << 20)
_EVENTS_MAX = 4096
_DEPARTED_KEPT = 64
# Lines that an operator should read at an event: none.
_CAUSES = []


class ServiceTest(store_cluster.StoreTest):
    def setUp(self):
        super().setUp()
        self.random = random.Random(_SEED)
        self.pause = threading.Event()
        self.addresses = {}
        self.status_now = None
        self.sampler = sampler.Sampler(_SAMPLE_SECONDS, self._on_late)
        self.journal = causes.Journal(self.sampler.now, _CAUSES)
        self.addCleanup(self.sampler.stop)
        started = self.journal.begin("start")
        self.log_file = os.path.join(self.folder, "decisions")
        metrics = ["--metrics", "localhost:0"]
        self.running = store_cluster.StoreCluster(
            self, ["--log-file", self.log_file, "--placement-wait", "1s", "--snapshots-kept",
                   _SNAPSHOTS_KEPT, "--feedback-flush-steps", 20, *metrics],
            servers=_SERVERS, groups=_GROUPS, workers=_WORKERS_PER_GROUP, loops=2,
            server_options=metrics)
        self.workers = [self._start_worker(rank) for rank in range(_GROUPS * _WORKERS_PER_GROUP)]
        self.producers = [
            ledger.Producer(self, self.running, contract, slot, rows=rows, options=["--pause", pause])
            for contract, slot, rows, pause in (
                ("async", 0, False, "200ms"), ("async", 1, False, "200ms"),
                ("buffered:2", 0, False, "200ms"), ("buffered:2", 1, False, "200ms"),
                # New rows come all the time, so it is slow: 1,000 rows in 4 hours.
                ("async", 0, True, "2s"))]
        for producer in self.producers:
            producer.await_durable(1, "first durable pushes")
        self._await_groups()
        self.running.count()
        self.start("leaker", [sys.executable, _LEAKING])
        self.visits = self.events_listed = 0
        for name, read in (
                ("log bytes", lambda: os.path.getsize(self.log_file)),
                ("store bytes", lambda: sampler.folder_bytes(self.store)[0]),
                ("store files", lambda: sampler.folder_bytes(self.store)[1]),
                ("shared memory files", lambda: sum("covey" in name for name in os.listdir("/dev/shm"))),
                ("nodes listed", lambda: len(self.status_now["view"]["nodes"])),
                ("tables", lambda: len(self.status_now["view"]["tables"])),
                ("events listed", lambda: self.events_listed)):
            self.sampler.add_gauge(name, read)
        self._status()
        self._fill_lists()
        started()
        self.sampler.start()

    def start(self, name, arguments, environment=None):
        """Keeps few of the lines of a program, and watches the memory of those of the job."""
        child = program.Program(name, [str(argument) for argument in arguments], environment,
                                lines_max=_LINES_MAX, on_line=self._on_line)
        self.addCleanup(child.kill)
        role = re.match("scheduler|server|worker|producer|leaker", name)
        if role:
            self.sampler.watch(role.group(), name, child.pid)
        return child

    def _on_line(self, child, stream, line):
        self.journal.read(child, stream, line)
        if found := re.search(r'"event":"serves_metrics".*"address":"([^"]+)"', line):
            self.addresses[child.pid] = found.group(1)

    def _on_late(self, seconds):
        self.journal.note("machine_stood_still", f"{seconds:.1f} s")

    def _start_worker(self, rank):
        return self.start(f"worker-{rank}", [ledger.WORKER, "--pause", "100ms", "--contract", "bsp"],
                          self.running.environment(rank))

    def _fill_lists(self):
        """Until the scheduler lists as many events and departed nodes as it ever will, which would
        take an hour otherwise."""
        while len(self._status()["view"]["nodes"]) < _DEPARTED_KEPT + len(self.workers):
            for rank in _RESTARTED_WORKERS:
                self.kill_worker(rank)
        while self._count_events() < _EVENTS_MAX:
            self.visit(0, tables=_FILL_TABLES)

    def _count_events(self):
        # A line that begins with dashes says how many events the scheduler no longer keeps.
        self.events_listed = sum(not line.startswith("--")
                                 for line in self._covey("events").splitlines())
        return self.events_listed

    # Conditions that the schedule waits for.

    def _poll(self, condition, what, seconds=program.PATIENCE_SECONDS):
        """Fails at once when a process has ended that should not have."""
        deadline = time.monotonic() + seconds
        while not condition():
            self._check_processes()
            self.assertLess(time.monotonic(), deadline, f"not within {seconds} s: {what}")
            self.pause.wait(_POLL_SECONDS)

    def _check_processes(self):
        for child in [self.running.scheduler, *self.running.servers, *self.workers,
                      *(producer.child for producer in self.producers)]:
            self.assertTrue(child.running(), child)

    def _status(self):
        status = self.running.status()
        self.assertIsNotNone(status)
        self.status_now = status
        return status

    def _await_servers(self):
        """All servers live, and all chains whole."""

        def whole():
            status = self._status()
            alive = {int(node["process_id"]) for node in cluster.nodes(status, "SERVER")}
            return alive == {server.pid for server in self.running.servers} and chains.whole(status)

        self._poll(whole, "all servers and whole chains", 2 * program.PATIENCE_SECONDS)

    def _await_groups(self):
        """All workers live, and all groups complete."""

        def complete():
            status = self._status()
            alive = {int(node["process_id"]) for node in cluster.nodes(status, "WORKER")}
            sizes = [len(group["members"]) for group in status["view"].get("groups", [])
                     if group["state"] == "ACTIVE"]
            return (alive == {worker.pid for worker in self.workers}
                    and sizes == [_WORKERS_PER_GROUP] * _GROUPS)

        self._poll(complete, "complete groups", 2 * program.PATIENCE_SECONDS)
        for worker in self.workers:
            worker.await_line('"event":"step"')

    # Events.

    def kill_server(self, rank):
        self.running.servers[rank].kill()
        self.pause.wait(3 * self.random.random())
        self.running.start_server(rank)
        self._await_servers()

    def drain_server(self, rank):
        server = self.running.servers[rank]
        if self.random.random() < 0.5:
            server.signal(signal.SIGTERM)
        else:
            self._covey("drain", f"server-{rank}")
        self.assertEqual(0, server.exit_code(_DRAIN_SECONDS), server)
        self.running.start_server(rank)
        self._await_servers()

    def kill_worker(self, rank):
        self.workers[rank].kill()
        self._replace_worker(rank)

    def drain_worker(self, rank):
        self.workers[rank].signal(signal.SIGTERM)
        self.assertEqual(0, self.workers[rank].exit_code(), self.workers[rank])
        self._replace_worker(rank)

    def _replace_worker(self, rank):
        self.workers[rank] = self._start_worker(rank)
        self._await_groups()

    def kill_producer(self, number):
        self.producers[number].kill()
        self.producers[number].start()
        self.producers[number].await_durable(1, "a durable push after its death")

    def make_snapshot(self, _):
        """And deletes the oldest one at times, before the scheduler does."""
        names = [found["name"] for found in json.loads(
            self._covey("snapshot", "list", "--store", self.store, "-o", "json", asks_scheduler=False))]
        if len(names) == _SNAPSHOTS_KEPT and self.random.random() < 0.5:
            self._covey("snapshot", "delete", names[0], "--store", self.store, asks_scheduler=False)
        self._covey("snapshot", "create")

    def visit(self, _, tables=1):
        """A client comes, uses a table of its own, drops it, and leaves; or several in turn."""
        self.visits += 1
        run = self.run_to_end("visitor", [_VISITOR, self.running.address, self.running.job,
                                          f"visit/{self.visits}", tables], seconds=_FILL_SECONDS)
        self.assertEqual(0, run.code, run)

    def count(self, _):
        """A client comes, uses a table that stays, and leaves."""
        self.running.count()

    def look(self, _):
        """An operator looks at everything."""
        self._status()
        # 1: it answers, and says what is not whole at the moment.
        self._covey("status", codes=(0, 1))
        self._covey("top", "--once")
        self._covey("tables")
        self._count_events()
        for child in [self.running.scheduler, *self.running.servers]:
            for path in ("metrics", "healthz"):
                with urllib.request.urlopen(f"http://{self.addresses[child.pid]}/{path}",
                                            timeout=program.PATIENCE_SECONDS) as answer:
                    self.assertTrue(answer.read())

    def _covey(self, *words, asks_scheduler=True, codes=(0,)):
        """The output of a command of the operator, which ends with one of these exit codes."""
        where = ["--scheduler", self.running.address] if asks_scheduler else []
        run = subprocess.run([program.built("client/cli/covey"), *words, *where],
                             capture_output=True, text=True, timeout=_DRAIN_SECONDS)
        self.assertIn(run.returncode, codes, (words, run.stdout[-2000:], run.stderr[-2000:]))
        return run.stdout

    def _victim(self, kind):
        of_kind = {"server": _RESTARTED_SERVERS, "worker": _RESTARTED_WORKERS,
                   "producer": (_RESTARTED_PRODUCER,)}
        return self.random.choice(of_kind.get(kind.partition("_")[2], (0,)))

    # The run.

    def test_nothing_grows(self):
        begin = self.sampler.now()
        end = begin + 60 * _MINUTES
        kinds, minute = [], 0
        while self.sampler.now() < end:
            if not kinds:
                kinds = self.random.sample(_ROUND, len(_ROUND))
            kind = kinds.pop()
            victim = self._victim(kind)
            print(f"{self.sampler.now():.1f} s: {kind} {victim}", flush=True)
            over = self.journal.begin(kind, str(victim))
            getattr(self, kind)(victim)
            over()
            self.pause.wait(self.random.random() * _PAUSE_SECONDS)
            self._check_processes()
            if self.sampler.now() - begin >= 60 * minute:
                self._print_progress(minute)
                minute += 1
        quarters = flatness.Quarters(begin, self.sampler.now())
        self._finish(quarters)

    def _print_progress(self, minute):
        memory = {}
        for life in self.sampler.lives():
            if series := life.series("resident"):
                memory[life.name] = f"{series[-1][1] / 1024:.1f}"
        print(f"minute {minute}: {sum(self.journal.counts().values())} events, "
              f"{self._pushes()} durable pushes, {self._steps()} steps, "
              f"{len(self.journal.complaints())} complaints, "
              f"{len(self.journal.unexplained())} without a cause; MiB: "
              + " ".join(f"{name.replace(' ', '/')}={value}" for name, value in memory.items()),
              flush=True)

    def _pushes(self):
        return sum(producer.durable() for producer in self.producers)

    def _steps(self):
        """Of the two groups, as the first member of each counts them."""
        return sum(int(event["number"]) for rank in (0, 2)
                   for event in ledger.events(self.workers[rank], "step")[-1:])

    def _finish(self, quarters):
        over = self.journal.begin("end")
        ledger.stop(self, self.running, self.producers)
        account = ledger.audit(self, self.running, self.producers)
        steps = self._steps()
        self.sampler.stop()
        verdicts = findings.verdicts(
            self.sampler.lives(), {name: (self.sampler.gauge(name), allowance)
                                   for name, allowance in _OF_GAUGES.items()}, quarters)
        for worker in self.workers:
            worker.signal(signal.SIGTERM)
        for worker in self.workers:
            self.assertEqual(0, worker.exit_code(), worker)
        self.running.stop()
        over()
        self._report(verdicts, account, steps)
        self.assertEqual([], account.deviations)
        self.assertEqual((0, 0), (account.lost, account.doubled))
        self.assertGreater(account.certain, 0)
        self.assertEqual([], [str(entry) for entry in self.journal.unexplained()][:50])
        for name, most in (("log bytes", _LOG_BYTES_MAX), ("events listed", _EVENTS_MAX)):
            self.assertLessEqual(max(value for _, value in self.sampler.gauge(name)), most, name)
        growing = [verdict for verdict in verdicts if verdict.grows]
        self.assertIn("leaker: resident", [verdict.what for verdict in growing])
        if _MINUTES >= _JUDGED_MINUTES:
            self.assertEqual([], [str(verdict) for verdict in growing
                                  if not verdict.what.startswith("leaker")])

    def _report(self, verdicts, account, steps):
        print(f"\nseed {_SEED}, {_MINUTES:g} minutes")
        for kind, number in sorted(self.journal.counts().items()):
            print(f"  {kind}: {number}")
        print(f"{account}\n{steps} steps of the groups")
        for (line, kind), number in sorted(self.journal.explained().items()):
            print(f"  {number} lines of {line} because of {kind}")
        for entry in self.journal.unexplained():
            print(f"  without a cause: {entry}")
        for verdict in verdicts:
            print(f"  {verdict}")
        for name in ("log bytes", "events listed"):
            print(f"  {name}: at most {max(value for _, value in self.sampler.gauge(name)):.0f}",
                  flush=True)
        findings.write(os.environ.get("TEST_UNDECLARED_OUTPUTS_DIR") or self.folder,
                       f"Resident memory, {_MINUTES:g} minutes, seed {_SEED}", verdicts,
                       self.sampler.lives(), self.journal.events(), self.sampler.now() / 60)


if __name__ == "__main__":
    report.main()
