# SPDX-License-Identifier: Apache-2.0
"""Lines of warning and error of all processes, each with its cause among the events of its time."""

import collections
import dataclasses
import json
import re
import threading

_WARNINGS = ("warning", "error", "critical")


@dataclasses.dataclass(frozen=True)
class Cause:
    """Explains some lines: an event in the `seconds` before them.

    role: regular expression of the name of the process. line: regular expression of its line.
    events: kinds of event, any of which explains it.
    """
    role: str
    line: str
    events: tuple
    seconds: float

    def explains(self, entry):
        return re.fullmatch(self.role, entry.name) and re.search(self.line, entry.line)


@dataclasses.dataclass(frozen=True)
class Entry:
    when: float
    name: str
    line: str

    def __str__(self):
        return f"{self.when:.1f} s, {self.name}: {self.line}"


class Journal:
    """What happened, and what processes complained about. Thread-safe.

    now: a function that returns seconds. Lines that begin no log line (JSON) are complaints, too.
    """

    def __init__(self, now, causes):
        self._now = now
        self._causes = causes
        self._lock = threading.Lock()
        self._events = []
        self._complaints = []

    def begin(self, kind, what=""):
        """Notes an event that begins now; returns a function to be called at its end."""
        event = [kind, self._now(), float("inf"), what]
        with self._lock:
            self._events.append(event)

        def end():
            event[2] = self._now()

        return end

    def note(self, kind, what=""):
        """Notes an event of this moment."""
        self.begin(kind, what)()

    def read(self, child, stream, line):
        """Keeps a line of standard error if it is a warning or error."""
        if stream != "stderr":
            return
        try:
            is_complaint = json.loads(line)["level"] in _WARNINGS
        except (ValueError, KeyError, TypeError):
            is_complaint = True
        if is_complaint:
            with self._lock:
                self._complaints.append(Entry(self._now(), child.name, line))

    def counts(self):
        """{kind: events}."""
        with self._lock:
            return collections.Counter(kind for kind, *_ in self._events)

    def events(self):
        """[(kind, begin, end, what)], in the order in which they began."""
        with self._lock:
            return [tuple(event) for event in self._events]

    def complaints(self):
        with self._lock:
            return list(self._complaints)

    def unexplained(self):
        """The complaints without a cause."""
        return [entry for entry in self.complaints() if self._cause(entry) is None]

    def explained(self):
        """{(pattern of the line, kind of event): complaints}."""
        found = collections.Counter()
        for entry in self.complaints():
            cause = self._cause(entry)
            if cause is not None:
                found[cause] += 1
        return found

    def _cause(self, entry):
        for cause in self._causes:
            if not cause.explains(entry):
                continue
            for kind, begin, end, _ in self.events():
                if kind in cause.events and begin <= entry.when <= end + cause.seconds:
                    return cause.line, kind
        return None
