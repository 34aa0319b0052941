# SPDX-License-Identifier: Apache-2.0
"""Producers that log which of their pushes are certain, and audits of the tables' values."""

import json
import signal

from tests.process import cluster, program

CLIENT = program.built("tests/process/ledger_client")
WORKER = program.built("tests/process/ledger_worker")
# As in ledger.h.
SHARDS, SLOTS, ELEMENTS = 4, 4, 512


def keys_of(number):
    """The rows of a sparse table that a push adds to."""
    return number % 8, 8 + number % 64, 72 + number % 512, 1024 + number // 64


def events(child, name):
    """The fields of a program's log lines of one event, in order."""
    found = []
    for line in child.lines("stderr"):
        if f'"event":"{name}"' in line:
            found.append(json.loads(line))
    return found


class Producer:
    """One slot of one table: a program that pushes, and after its death a successor."""

    def __init__(self, test, running, contract, slot, replicas=2, options=(), where=(), rows=False,
                 client=CLIENT):
        self.contract = contract
        self.slot = slot
        self.rows = rows
        self._test = test
        self._arguments = [
            *where, client, "--scheduler", running.address, "--job", running.job, "--do", "push",
            *running.tls_of("client"), "--contract", contract, "--slot", slot, "--replicas", replicas,
            *_table_options(rows), *options]
        self._lives = []
        self.start()

    def start(self):
        """Continues with numbers that no earlier life has used."""
        first = self.sent()
        self.child = self._test.start(
            f"producer {self.table()} {self.slot}", [*self._arguments, "--first", first])
        self._lives.append((first, self.child))

    def table(self):
        return self.contract + (" rows" if self.rows else "")

    def kill(self):
        """Loses no line that it has logged."""
        self.child.kill()

    def sent(self):
        """Pushes with lower numbers may have been sent."""
        return max([0, *(before for _, _, before in self._spans())])

    def durable(self):
        """The number of certain pushes so far."""
        return sum(certain - first for first, certain, _ in self._spans())

    def await_durable(self, more, what, seconds=program.PATIENCE_SECONDS):
        goal = self.durable() + more
        program.await_true(lambda: self.durable() >= goal or not self.child.running(),
                           f"{what}: {self.child}", seconds)
        self._test.assertTrue(self.child.running(), self.child)

    def _spans(self):
        """(first, certain before, possible before) of each life."""
        spans = []
        for first, child in self._lives:
            certain = [int(event["before"]) for event in events(child, "durable")]
            possible = [int(event["before"]) for event in events(child, "sending")]
            spans.append((first, max([first, *certain]), max([first, *possible])))
        return spans

    def expectation(self):
        """For each element, or key: the pushes that it holds for certain, and those that it may hold."""
        size = keys_of(self.sent())[-1] + 1 if self.rows else ELEMENTS
        places = keys_of if self.rows else lambda number: [number % ELEMENTS]
        certain, possible = [0] * size, [0] * size
        for first, certain_before, possible_before in self._spans():
            for counts, numbers in ((certain, range(first, certain_before)),
                                    (possible, range(certain_before, possible_before))):
                for number in numbers:
                    for place in places(number):
                        counts[place] += 1
        return certain, possible


class Account:
    """The fate of all pushes of some producers."""

    def __init__(self):
        self.certain = self.uncertain = self.applied = self.lost = self.doubled = 0
        self.deviations = []

    def add(self, producer, shard, counts):
        certain, possible = producer.expectation()
        # A flush may apply a buffered push without its partner; then it counts as two.
        heaviest = 2 if producer.contract == "buffered:2" else 1
        # Producers have pushed to no key beyond those of the account.
        certain += [0] * (len(counts) - len(certain))
        possible += [0] * (len(counts) - len(possible))
        for element, count in enumerate(counts):
            least, most = certain[element], heaviest * (certain[element] + possible[element])
            self.lost += max(0, least - count)
            self.doubled += max(0, count - most)
            if not least <= count <= most or count != int(count):
                self.deviations.append(
                    f"{producer.table()} shard {shard} slot {producer.slot} element {element}: "
                    f"{count} not in {least}..{most}")
        self.certain += sum(certain)
        self.uncertain += sum(possible)
        self.applied += sum(counts)

    def __str__(self):
        text = (f"{self.certain} certain additions, {self.uncertain} uncertain, "
                f"{self.applied:.0f} applied: {self.lost:.0f} lost, {self.doubled:.0f} doubled")
        return "\n".join([text, *self.deviations[:20]])


def stop(test, running, producers, seconds=program.PATIENCE_SECONDS, where=()):
    """Ends producers, which first flush; completes updates for which buffered pushes wait."""
    for producer in producers:
        producer.child.signal(signal.SIGTERM)
    for contract, rows in {(producer.contract, producer.rows) for producer in producers}:
        if contract.startswith("buffered"):
            _run(test, running, contract, "settle", where, _table_options(rows))
    for producer in producers:
        test.assertEqual(0, producer.child.exit_code(seconds), producer.child)


def audit(test, running, producers, where=(), replicas=2):
    """The account of these producers' pushes."""
    account = Account()
    for contract, rows in sorted({(producer.contract, producer.rows) for producer in producers}):
        mine = [producer for producer in producers
                if (producer.contract, producer.rows) == (contract, rows)]
        # All keys that any of them has, and some more.
        keys = keys_of(max(producer.sent() for producer in mine))[-1] + 100
        options = ["--replicas", replicas, *_table_options(rows), *(["--keys", keys] if rows else [])]
        held = events(_run(test, running, contract, "audit", where, options), "held")
        test.assertEqual(SLOTS * (1 if rows else SHARDS), len(held))
        for entry in held:
            counts = [float(count) for count in entry["counts"].split(",")]
            for producer in mine:
                if producer.slot == int(entry["slot"]):
                    account.add(producer, int(entry["shard"]), counts)
    return account


def _table_options(rows):
    return ["--rows"] if rows else []


def _run(test, running, contract, what, where, options):
    child = test.run_to_end(what, [*where, CLIENT, "--scheduler", running.address, "--job", running.job,
                                   *running.tls_of("client"), "--do", what, "--contract", contract,
                                   *options])
    test.assertEqual(0, child.code, child)
    return child
