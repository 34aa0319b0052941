# SPDX-License-Identifier: Apache-2.0
"""Two jobs on one host: neither reaches the other, and each keeps to its quotas.

The shares that the jobs of a host get of it, for docs/BENCHMARKS.md:
  bazel build --config=opt //tests/process:jobs_test
  bazel-bin/tests/process/jobs_test --measure FILE.json --clients 2 --seconds 8
"""

import os
import statistics
import time

from tests.process import cluster, figures, ledger, outage, program, wire, zmtp

_OTHER = "other-job"
# As in ledger.h: the bytes of a push to a dense table.
_PUSH_BYTES = ledger.SHARDS * ledger.SLOTS * ledger.ELEMENTS * 4
_RATE_BYTES = 2 << 20
# What a bucket holds, in seconds (server/token_bucket.h).
_DEPTH_SECONDS = 0.5
# The benchmark: tables of 1 MiB, all in one shard.
_TABLES, _ELEMENTS = 4, 1 << 18
_ROUNDS = 5
_FIGURES = figures.Figures(clients=1, seconds=1)


class JobsTest(cluster.ProcessTest):
    def test_a_job_refuses_what_belongs_to_another(self):
        mine = cluster.Cluster(self)
        other = cluster.Cluster(self, job=_OTHER)
        self.assertEqual(1, mine.count())
        self.assertEqual(1, other.count())
        before = other.status()
        for name, arguments, environment in (
                ("client", [cluster.COUNTER, other.address, mine.job], None),
                ("server", [cluster.SERVER, "--scheduler", other.address, "--job", mine.job], None),
                ("worker", [cluster.FASHION_MNIST], {**other.environment(), "COVEY_JOB": mine.job})):
            stranger = self.run_to_end(name, arguments, environment)
            self.assertNotEqual(0, stranger.code, stranger)
            self.assertIn(f"runs job '{_OTHER}', the sender belongs to another one",
                          stranger.lines("stderr")[-1], stranger)
        # Data ports answer no message of another job: its sender might know no name of this one.
        [server] = cluster.nodes(before, "SERVER")
        [port] = cluster.ports(server)
        fingerprint = int(mine.status()["view"]["job"])
        self.assertNotEqual(fingerprint, int(before["view"]["job"]))
        frame = b"\0\0\x80\x3f" * 4
        stray = [
            wire.head(wire.envelope(wire.PUSH_REQUEST, wire.push(table=1), [frame],
                                    job=fingerprint, node=9, incarnation=1)), frame]
        with zmtp.Peer(port) as peer:
            for _ in range(10):
                peer.send_message(stray)
            counted = cluster.malformed(before)[0] + 10
            other.await_status(lambda status: cluster.malformed(status)[0] >= counted,
                               "ten strays to be counted")
        self.assertEqual(2, other.count())
        self.assertEqual(2, mine.count())
        self.assertEqual(_members(before), _members(other.status()))

    def test_a_table_beyond_the_quota_fails_alone(self):
        running = cluster.Cluster(self, loops=2, server_options=["--table-bytes-max", "16MiB"])
        other = cluster.Cluster(self, job=_OTHER)
        self.assertEqual(1, running.count())
        begun = time.monotonic()
        large = self.run_to_end("large", [
            outage.PROBE, "--scheduler", running.address, "--job", running.job, "--tables", 1,
            "--elements", 8 << 20, "--replicas", 1, "--deadline", "3s"])
        self.assertNotEqual(0, large.code, large)
        self.assertLess(time.monotonic() - begun, 30)
        why = ledger.events(large, "failed")[0]["reason"]
        for part in ("probe/0", "need 33554432 bytes", "tables of the servers may take"):
            self.assertIn(part, why)
        # What holds less goes on, also what is made only now.
        self.assertEqual(2, running.count())
        small = ledger.Producer(self, running, "async", 0, replicas=1)
        small.await_durable(1, "a push to a small table")
        self.assertTrue(running.servers[0].running(), running.servers[0])
        self.assertEqual(1, other.count())

    def test_the_rate_is_kept_and_no_push_is_lost(self):
        running = cluster.Cluster(self, loops=2, server_options=["--rate-max", _RATE_BYTES])
        producers = [
            ledger.Producer(self, running, "async", slot, replicas=1, options=["--batch", 4])
            for slot in range(4)]

        def refused(status):
            loads = [entry.get("load") or {} for entry in status["nodes"]]
            return sum(int(load.get("refused", 0)) for load in loads)

        # The bucket was full at first.
        running.await_status(lambda status: refused(status) > 0, "pushes beyond the rate")
        seconds = 6
        begun, before = time.monotonic(), self._durable(producers)
        program.await_true(lambda: time.monotonic() > begun + seconds, "time", seconds + 10)
        after, passed = self._durable(producers), time.monotonic() - begun
        rate = (after - before) * _PUSH_BYTES / passed
        print(f"{rate / (1 << 20):.2f} of {_RATE_BYTES / (1 << 20):.2f} MiB/s, "
              f"{refused(running.status())} requests refused", flush=True)
        self.assertLess(rate, 1.1 * _RATE_BYTES)
        # A rate of nothing would be kept, too.
        self.assertGreater(after, before)
        ledger.stop(self, running, producers)
        account = ledger.audit(self, running, producers, replicas=1)
        print(account, flush=True)
        self.assertEqual([], account.deviations)
        self.assertEqual((0, 0), (account.lost, account.doubled))

    @staticmethod
    def _durable(producers):
        return sum(producer.durable() for producer in producers)

    def test_a_low_priority_is_one_of_all_threads(self):
        running = cluster.Cluster(self, scheduler_options=["--priority", "low"],
                                  server_options=["--priority", "low"])
        worker = self.start("worker", [cluster.RING_WORKER],
                            {**running.environment(), "COVEY_PRIORITY": "low"})
        worker.await_line("ready")
        for child in (running.scheduler, *running.servers, worker):
            nices = _nices(child.pid)
            self.assertGreater(len(nices), 1, child)
            self.assertTrue(all(nice >= 10 for nice in nices), f"{child}: {nices}")

    def test_shares(self):
        """How much a greedy job leaves to another; only --measure takes long."""
        shares = {"alone": [], "greedy": [], "rate-max": [], "low": [], "both": []}
        seconds = _FIGURES.options.seconds
        rounds = _ROUNDS if _FIGURES.options.measure else 1
        quiet = cluster.Cluster(self)
        free = self._rate_of_job(cluster.Cluster(self, job=_OTHER), seconds)
        low = ["--priority", "low"]
        bounded = ["--rate-max", max(int(free * (1 << 20) / 10), 1 << 20)]
        greedy = {"greedy": [], "rate-max": bounded, "low": low, "both": bounded + low}
        rates = {name: [] for name in greedy}
        for _ in range(rounds):
            shares["alone"].append(self._rate_of_job(quiet, seconds))
            for name, options in greedy.items():
                is_low = name in ("low", "both")
                other = cluster.Cluster(self, job=_OTHER, server_options=options,
                                        scheduler_options=low if is_low else ())
                floods = self._floods(other, _FIGURES.options.clients, is_low)
                mine, theirs = self._rates([self._floods(quiet, 1), floods], seconds)
                shares[name].append(mine)
                rates[name].append(theirs)
                for child in (*other.servers, other.scheduler):
                    child.kill()
        medians = {name: statistics.median(values) for name, values in shares.items()}
        _FIGURES.note("jobs", free_mib_s=round(free, 1), **{
            f"{name.replace('-', '_')}_mib_s": round(median, 1) for name, median in medians.items()
        }, **{
            f"{name.replace('-', '_')}_share": round(median / medians["alone"], 3)
            for name, median in medians.items() if name != "alone"
        }, **{
            f"{name.replace('-', '_')}_of_the_greedy_mib_s": round(statistics.median(values), 1)
            for name, values in rates.items()})

    def _floods(self, running, count, low=False):
        where = ["nice", "-n", "10"] if low else []
        return [outage.Probe(self, running, _TABLES, ["--elements", _ELEMENTS, "--replicas", 1],
                             where) for _ in range(count)]

    def _rate_of_job(self, running, seconds):
        return self._rates([self._floods(running, 1)], seconds)[0]

    def _rates(self, jobs, seconds):
        """MiB per second of each job's floods, which end, after a moment to settle."""
        begin = time.time() + 1
        end = begin + seconds
        program.await_true(lambda: time.time() > end + 0.5, "time", seconds + 10)
        rates = [sum(flood.rate(range(_TABLES), begin, end) for flood in floods)
                 * _ELEMENTS * 4 / (1 << 20) for floods in jobs]
        for floods in jobs:
            for flood in floods:
                flood.stop(self)
        return rates


def _members(status):
    """The nodes of a job, without its clients, which come and go."""
    return [node for node in status["view"]["nodes"] if node["role"] != "CLIENT"]


def _nices(pid):
    """The nice values of a process's threads."""
    nices = []
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/stat", encoding="ascii") as file:
            nices.append(int(file.read().rpartition(")")[2].split()[16]))
    return nices


if __name__ == "__main__":
    _FIGURES.main()
