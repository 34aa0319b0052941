# SPDX-License-Identifier: Apache-2.0
"""Samples of what processes hold: memory, open files, threads; and of other figures, such as the
bytes of a folder."""

import array
import os
import pathlib
import re
import threading
import time

# Figures of a process, memory in KiB.
FIGURES = ("resident", "anonymous", "files", "threads")
_FIELDS = {"resident": "VmRSS", "anonymous": "RssAnon", "threads": "Threads"}


def of_process(pid):
    """{figure: value} of a process; None when there is none."""
    folder = pathlib.Path(f"/proc/{pid}")
    try:
        status = (folder / "status").read_text()
        found = {figure: int(re.search(rf"^{field}:\s+(\d+)", status, re.MULTILINE).group(1))
                 for figure, field in _FIELDS.items()}
        return {**found, "files": len(os.listdir(folder / "fd"))}
    except (OSError, AttributeError):  # gone, or a zombie, which has no memory
        return None


def folder_bytes(folder):
    """(bytes, files) under a folder, whose files may come and go."""
    total = count = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(path, name)).st_size
                count += 1
            except OSError:
                continue
    return total, count


class Life:
    """The samples of one process."""

    def __init__(self, role, name, pid, born):
        self.role = role
        self.name = name
        self.pid = pid
        self.born = born
        self._times = array.array("d")
        self._values = {figure: array.array("d") for figure in FIGURES}

    def add(self, now, values):
        self._times.append(now)
        for figure in FIGURES:
            self._values[figure].append(values[figure])

    def series(self, figure):
        return list(zip(self._times, self._values[figure]))


class Sampler:
    """Samples every `period` seconds from a thread of its own, between `start` and `stop`.

    Times are seconds since it was made. on_late: called with a number of seconds when a sample
    comes that much too late, which shows that the machine, and not the job, stood still.
    """

    def __init__(self, period, on_late):
        self._period = period
        self._on_late = on_late
        self._epoch = time.monotonic()
        self._lock = threading.Lock()
        self._lives = []
        self._live = []
        self._gauges = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def now(self):
        return time.monotonic() - self._epoch

    def watch(self, role, name, pid):
        """Samples this process until it ends."""
        life = Life(role, name, pid, self.now())
        with self._lock:
            self._lives.append(life)
            self._live.append(life)

    def add_gauge(self, name, read):
        """Samples what `read` returns."""
        self._gauges[name] = (read, [])

    def gauge(self, name):
        """[(seconds, value)] so far."""
        return list(self._gauges[name][1])

    def lives(self):
        with self._lock:
            return list(self._lives)

    def start(self):
        self._thread.start()

    def stop(self):
        self._over.set()
        self._thread.join()

    def _run(self):
        due = self.now()
        while not self._over.wait(max(0, due - self.now())):
            late = self.now() - due
            if late > 1:
                self._on_late(late)
            self._sample()
            due = max(due + self._period, self.now())

    def _sample(self):
        with self._lock:
            live = list(self._live)
        gone = []
        for life in live:
            values = of_process(life.pid)
            if values is None:
                gone.append(life)
            else:
                life.add(self.now(), values)
        with self._lock:
            self._live = [life for life in self._live if life not in gone]
        for read, series in self._gauges.values():
            series.append((self.now(), read()))
