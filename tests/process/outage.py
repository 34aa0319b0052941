# SPDX-License-Identifier: Apache-2.0
"""When tables accept no pushes, and how many they accept otherwise (outage_probe.cc)."""

from tests.process import cluster, ledger, program

PROBE = program.built("tests/process/outage_probe")
# A push that takes less is no outage (outage_probe.cc).
_SLOW_SECONDS = 0.1


class Probe:
    """Keeps one push at a time in flight to each of some tables, "probe/0" and so on."""

    def __init__(self, test, running, tables=6, options=(), where=()):
        self.child = test.start("outage_probe", [
            *where, PROBE, "--scheduler", running.address, "--job", running.job, "--tables", tables,
            *options])
        self.child.await_line('"event":"rate"', count=2)

    def outage(self, table, since, seconds=program.PATIENCE_SECONDS):
        """How long after `since` the table accepted a push; at least the probe's resolution."""
        def ended():
            assert self.child.running(), self.child
            slow = [event for event in ledger.events(self.child, "slow")
                    if int(event["probe"]) == table and float(event["ended"]) > since
                    and float(event["began"]) < since + _SLOW_SECONDS]
            if slow:
                return float(slow[-1]["ended"]) - since
            return _SLOW_SECONDS if self._pushes_after(table, since) else None
        return program.await_true(ended, f"a push to probe/{table}: {self.child}", seconds)

    def _pushes_after(self, table, since):
        """Whether a push ended when an outage that began at `since` would have been visible."""
        return any(float(event["ended"]) > since + 1 and self._pushes(event)[table] > 0
                   for event in ledger.events(self.child, "rate"))

    @staticmethod
    def _pushes(event):
        return [int(number) for number in event["operations"].split(",")]

    def rate(self, tables, begin, end):
        """Pushes per second to these tables together, between two moments."""
        pushes, seconds, before = 0, 0, None
        for event in ledger.events(self.child, "rate"):
            ended = float(event["ended"])
            if before is not None and before >= begin and ended <= end:
                pushes += sum(self._pushes(event)[table] for table in tables)
                seconds += ended - before
            before = ended
        return pushes / seconds if seconds else 0

    def slowest(self, begin, end, field="p99"):
        """The worst value of this figure over the intervals between two moments, in seconds."""
        return max([0.0, *(float(event[field]) for event in ledger.events(self.child, "rate")
                           if begin <= float(event["ended"]) <= end)])

    def pushes(self, table):
        """How many pushes the table has accepted so far, up to the newest interval."""
        return sum(self._pushes(event)[table] for event in ledger.events(self.child, "rate"))

    def newest(self):
        """The end of the newest interval with figures."""
        return max(float(event["ended"]) for event in ledger.events(self.child, "rate"))

    def stop(self, test):
        """Ends it, after checking that it has not failed by itself."""
        test.assertTrue(self.child.running(), self.child)
        self.child.kill()
