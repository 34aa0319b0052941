# SPDX-License-Identifier: Apache-2.0
"""Servers and workers come and go while the others continue: no push fails and none is lost.

The figures are printed; they are meaningful on a quiet machine only:
  bazel build --config=opt //tests/process:elastic_test
  bazel-bin/tests/process/elastic_test --measure FILE.json --quiet-seconds 10
"""

import os
import signal
import time

from tests.process import chains, cluster, figures, ledger, outage, program

_FIGURES = figures.Figures(quiet_seconds=2)
_DRAIN_SECONDS = 30


def shards_of(status, name):
    """The number of chains that a server is in."""
    return sum(name in [server for server, _ in chain] for chain in chains.of(status).values())


class ElasticTest(cluster.ProcessTest):
    def setUp(self):
        super().setUp()
        log = os.path.join(self.folder, "decisions")
        self.running = cluster.Cluster(
            self, servers=2, workers=2, loops=2,
            scheduler_options=["--log-file", log, "--placement-wait", "1s"])

    def _produce(self):
        self.producers = [ledger.Producer(self, self.running, contract, slot)
                          for contract in ("async", "buffered:2") for slot in range(2)]
        for producer in self.producers:
            producer.await_durable(1, "first durable pushes")

    def _audit(self):
        for producer in self.producers:
            producer.await_durable(3, "durable pushes in the end")
        ledger.stop(self, self.running, self.producers)
        account = ledger.audit(self, self.running, self.producers)
        print(account, flush=True)
        self.assertEqual([], account.deviations)
        # No process was killed, so every push is certain.
        self.assertEqual(0, account.uncertain)
        self.assertGreater(account.certain, 0)

    def _await_spread(self, servers):
        """Waits for whole chains, and at least one replica on every server."""
        return self.running.await_status(
            lambda status: len(cluster.nodes(status, "SERVER")) == servers and chains.whole(status)
            and all(shards_of(status, node["name"]) > 0
                    for node in cluster.nodes(status, "SERVER")), f"{servers} servers in use")

    def test_servers_come_and_go(self):
        self._produce()
        pulls = outage.Probe(self, self.running, tables=8, options=["--pull"])
        self._await_spread(2)
        self._spend(_FIGURES.options.quiet_seconds)
        quiet = pulls.slowest(time.time() - _FIGURES.options.quiet_seconds, time.time())

        began = time.time()
        for rank in (2, 3):
            self.running.servers.append(None)
            self.running.start_server(rank)
        self._await_spread(4)
        grown = time.time()

        leaver = self.running.servers[1]
        leaver.signal(signal.SIGTERM)
        self.assertEqual(0, leaver.exit_code(_DRAIN_SECONDS), leaver)
        drained = time.time()
        status = self._await_spread(3)
        self.assertEqual(0, shards_of(status, "server-1"))
        self._spend(0.5)
        _FIGURES.note("servers 2 to 4 to 3", grow_seconds=round(grown - began, 3),
                      drain_seconds=round(drained - grown, 3), pull_p99_quiet=quiet,
                      pull_p99_moving=pulls.slowest(began, drained),
                      pull_slowest_moving=pulls.slowest(began, drained, "slowest"))
        pulls.stop(self)
        self._audit()

    def test_all_but_one_server_drain(self):
        self._produce()
        self._await_spread(2)
        leaver = self.running.servers[0]
        leaver.signal(signal.SIGTERM)
        self.assertEqual(0, leaver.exit_code(_DRAIN_SECONDS), leaver)
        self._audit()

    def test_workers_come_and_go(self):
        workers = [self._start_worker() for _ in range(2)]
        for worker in workers:
            worker.await_line('"event":"step"', count=3)
        workers.append(self._start_worker())
        workers[2].await_line('"event":"step"', count=3)
        leaver = workers.pop(0)
        leaver.signal(signal.SIGTERM)
        self.assertEqual(0, leaver.exit_code(), leaver)
        for worker in workers:
            worker.await_line('"event":"step"', count=worker.count('"event":"step"') + 10)
            self.assertTrue(worker.running(), worker)

    def _start_worker(self):
        return self.start("ledger_worker", [ledger.WORKER], self.running.environment())

    def _spend(self, seconds):
        """Runs while producers continue."""
        until = time.time() + seconds
        program.await_true(lambda: time.time() > until, "time", seconds + 5)


if __name__ == "__main__":
    _FIGURES.main()
