# SPDX-License-Identifier: Apache-2.0
"""Producers that log which of their pushes are certain, and audits of the tables' values."""

import json
import signal

from tests.process import cluster, program

CLIENT = program.built("tests/process/ledger_client")
WORKER = program.built("tests/process/ledger_worker")
# As in ledger.h.
SHARDS, SLOTS, ELEMENTS = 4, 4, 512


def events(child, name):
    """The fields of a program's log lines of one event, in order."""
    found = []
    for line in child.lines("stderr"):
        if f'"event":"{name}"' in line:
            found.append(json.loads(line))
    return found


class Producer:
    """One slot of one table: a program that pushes, and after its death a successor."""

    def __init__(self, test, running, contract, slot, replicas=2, options=(), where=()):
        self.contract = contract
        self.slot = slot
        self._test = test
        self._arguments = [
            *where, CLIENT, "--scheduler", running.address, "--job", cluster.JOB, "--do", "push",
            "--contract", contract, "--slot", slot, "--replicas", replicas, *options]
        self._lives = []
        self.start()

    def start(self):
        """Continues with numbers that no earlier life has used."""
        first = self.sent()
        self.child = self._test.start(
            f"producer {self.contract} {self.slot}", [*self._arguments, "--first", first])
        self._lives.append((first, self.child))

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
        """For each element: the pushes that it holds for certain, and those that it may also hold."""
        certain, possible = [0] * ELEMENTS, [0] * ELEMENTS
        for first, certain_before, possible_before in self._spans():
            for number in range(first, certain_before):
                certain[number % ELEMENTS] += 1
            for number in range(certain_before, possible_before):
                possible[number % ELEMENTS] += 1
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
        for element, count in enumerate(counts):
            least, most = certain[element], heaviest * (certain[element] + possible[element])
            self.lost += max(0, least - count)
            self.doubled += max(0, count - most)
            if not least <= count <= most or count != int(count):
                self.deviations.append(
                    f"{producer.contract} shard {shard} slot {producer.slot} element {element}: "
                    f"{count} not in {least}..{most}")
        self.certain += sum(certain)
        self.uncertain += sum(possible)
        self.applied += sum(counts)

    def __str__(self):
        text = (f"{self.certain} certain pushes to single shards, {self.uncertain} uncertain, "
                f"{self.applied:.0f} applied: {self.lost:.0f} lost, {self.doubled:.0f} doubled")
        return "\n".join([text, *self.deviations[:20]])


def stop(test, running, producers, seconds=program.PATIENCE_SECONDS, where=()):
    """Ends producers, which first flush; completes updates for which buffered pushes wait."""
    for producer in producers:
        producer.child.signal(signal.SIGTERM)
    for contract in {producer.contract for producer in producers}:
        if contract.startswith("buffered"):
            _run(test, running, contract, "settle", where)
    for producer in producers:
        test.assertEqual(0, producer.child.exit_code(seconds), producer.child)


def audit(test, running, producers, where=()):
    """The account of these producers' pushes."""
    account = Account()
    for contract in sorted({producer.contract for producer in producers}):
        held = events(_run(test, running, contract, "audit", where), "held")
        test.assertEqual(SHARDS * SLOTS, len(held))
        for entry in held:
            counts = [float(count) for count in entry["counts"].split(",")]
            for producer in producers:
                if (producer.contract, producer.slot) == (contract, int(entry["slot"])):
                    account.add(producer, int(entry["shard"]), counts)
    return account


def _run(test, running, contract, what, where):
    child = test.run_to_end(what, [*where, CLIENT, "--scheduler", running.address, "--job", cluster.JOB,
                                   "--do", what, "--contract", contract])
    test.assertEqual(0, child.code, child)
    return child
