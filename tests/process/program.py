# SPDX-License-Identifier: Apache-2.0
"""Programs as children of a test: their output line by line, and nothing of them left behind."""

import collections
import ctypes
import os
import pathlib
import re
import signal
import subprocess
import threading
import time

# Generous, because a busy machine is no failure; only a hang takes this long.
PATIENCE_SECONDS = 60

# The workspace as Bazel lays it out beside a test: sources and built programs under their paths.
_ROOT = pathlib.Path(__file__).parents[2]
_MARK = "COVEY_TEST_MARK"
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)


def built(path):
    """The built program of the target //a:b, given as "a/b"."""
    return str(_ROOT / path)


def await_true(condition, what, seconds=PATIENCE_SECONDS):
    """Polls `condition` until it returns something true, which is returned."""
    deadline = time.monotonic() + seconds
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.02)


class Program:
    """A running child with a process group of its own, which dies with the test at the latest.

    Every descendant carries the child's mark in its environment, whatever group it moves to.

    lines_max: of each stream only the newest lines are kept; None = all.
    on_line: called with (program, stream, line) for each line, by the threads that read.
    """

    def __init__(self, name, arguments, environment=None, lines_max=None, on_line=None):
        self.name = name
        self._arguments = arguments
        self._on_line = on_line
        self._lines = {stream: collections.deque(maxlen=lines_max) for stream in ("stdout", "stderr")}
        self._changed = threading.Condition()
        self.mark = f"{os.getpid()}-{time.monotonic_ns()}"
        clean = {key: value for key, value in os.environ.items() if not key.startswith("COVEY_")}
        self._process = subprocess.Popen(
            arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**clean, **(environment or {}), _MARK: self.mark},
            text=True,
            errors="replace",
            start_new_session=True,
            preexec_fn=lambda: _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL),
        )
        self._readers = [
            threading.Thread(target=self._read, args=(stream,), daemon=True)
            for stream in self._lines
        ]
        for reader in self._readers:
            reader.start()

    @property
    def pid(self):
        return self._process.pid

    def _read(self, stream):
        with getattr(self._process, stream) as lines:
            for line in lines:
                line = line.rstrip("\n")
                if self._on_line is not None:
                    self._on_line(self, stream, line)
                with self._changed:
                    self._lines[stream].append(line)
                    self._changed.notify_all()

    def lines(self, stream=None):
        """Its output so far."""
        with self._changed:
            return [line for name in self._lines if stream in (None, name)
                    for line in self._lines[name]]

    def say(self, line):
        """Writes to its standard input."""
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def close_input(self):
        """Ends its standard input."""
        self._process.stdin.close()

    def await_line(self, pattern, seconds=PATIENCE_SECONDS, count=1):
        """The match in the `count`-th line that `pattern` matches."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while True:
                matches = [found for lines in self._lines.values() for line in lines
                           if (found := re.search(pattern, line))]
                if len(matches) >= count:
                    return matches[count - 1]
                left = deadline - time.monotonic()
                if left <= 0 or (not self.running() and not self._reading()):
                    break
                self._changed.wait(min(left, 0.1))
        raise AssertionError(f"no line {pattern!r} within {seconds} s from {self}")

    def count(self, pattern):
        """Lines so far that `pattern` matches."""
        return sum(bool(re.search(pattern, line)) for line in self.lines())

    def _reading(self):
        return any(reader.is_alive() for reader in self._readers)

    def running(self):
        return self._process.poll() is None

    def exit_code(self, seconds=PATIENCE_SECONDS):
        """Waits for its end; returns the exit code, or minus the signal that killed it."""
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {seconds} s: {self}") from None
        for reader in self._readers:
            reader.join(seconds)
        return code

    def signal(self, number):
        """Signals this process alone, not its group."""
        self._process.send_signal(number)

    def descendants(self):
        """{process id: command line} of it and of its descendants, alive or orphaned."""
        found = {}
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                if f"{_MARK}={self.mark}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                    command = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
                    found[int(entry.name)] = command.decode(errors="replace").strip()
            except OSError:
                continue  # gone meanwhile, or another user's
        return found

    def kill(self):
        """Ends it and all its descendants."""
        for pid in self.descendants():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self._process.wait()
        for reader in self._readers:
            reader.join(PATIENCE_SECONDS)
        self._process.stdin.close()
        self._keep_output()

    def _keep_output(self):
        """The folder that COVEY_TEST_LOGS names, if any, keeps the output of all programs."""
        if folder := os.environ.get("COVEY_TEST_LOGS"):
            path = pathlib.Path(folder) / f"{self.name.replace(' ', '-')}-{self.pid}.log"
            path.write_text("\n".join([" ".join(self._arguments), *self.lines()]) + "\n")

    def memory_kib(self, field="VmRSS"):
        """A field of its memory: VmRSS, VmHWM, RssAnon."""
        status = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(rf"^{field}:\s+(\d+) kB", status, re.MULTILINE).group(1))

    def __str__(self):
        state = "running" if self.running() else f"ended with {self._process.returncode}"
        text = "\n  ".join(self.lines()[-40:])
        return f"{self.name} ({state}): {' '.join(self._arguments)}\n  {text}"
