# SPDX-License-Identifier: Apache-2.0
"""`covey events` and `covey top` with a real cluster; top in a pseudo-terminal."""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import termios

from tests import report
from tests.process import cluster
from tests.process import program


class Terminal:
    """A program in a pseudo-terminal of this size."""

    def __init__(self, columns, rows, *command):
        self.written = b""
        self.pid, self.end = pty.fork()
        if self.pid == 0:
            os.execv(command[0], command)
        self.resize(columns, rows)
        self.before = termios.tcgetattr(self.end)

    def resize(self, columns, rows):
        fcntl.ioctl(self.end, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys):
        os.write(self.end, keys)

    def _read(self):
        """False at the end."""
        if not select.select([self.end], [], [], 0.1)[0]:
            return True
        try:
            self.written += os.read(self.end, 65536)
            return True
        except OSError:
            return False

    def await_text(self, text):
        """Waits for this among what is written from now on, or since the last such call."""

        def there():
            self._read()
            return text in self.written

        program.await_true(there, f"{text} in {self.written}")
        self.written = self.written[self.written.index(text) + len(text):]

    def exit_code(self):
        while self._read():
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


class CliEventsTopTest(cluster.ProcessTest):

    def test_events(self):
        running = cluster.Cluster(self, servers=1)
        asked = {"COVEY_SCHEDULER": running.address}

        def events(*words):
            run = self.run_to_end("covey events", [cluster.COVEY, "events", *words], asked)
            self.assertEqual(0, run.code, run)
            return run.lines("stdout")

        self.assertIn("server-0", "".join(events()))
        found = [json.loads(line) for line in events("-o", "json", "--kind", "node")]
        self.assertTrue(found)
        self.assertTrue(all("node" in event["kinds"] for event in found), found)
        self.assertTrue(all(isinstance(event["at_seconds"], float) for event in found), found)
        self.assertEqual([], events("--node", "server-1"))
        wrong = self.run_to_end("covey events", [cluster.COVEY, "events", "--kind", "x"], asked)
        self.assertEqual(2, wrong.code, wrong)

        following = self.start("covey events", [cluster.COVEY, "events", "--follow"], asked)
        following.await_line("server-0 .*registered")
        running.count()
        following.await_line("table 'count.*' created")
        following.signal(signal.SIGINT)
        self.assertEqual(0, following.exit_code(), following)

    def top(self, running, columns, rows):
        terminal = Terminal(columns, rows, cluster.COVEY, "top", "--scheduler", running.address,
                            "--every", "200ms")
        terminal.await_text(b"\033[?1049h")
        return terminal

    def ends(self, terminal):
        terminal.await_text(b"\033[?25h\033[?1049l")
        after = termios.tcgetattr(terminal.end)
        self.assertEqual(terminal.before, after, "the terminal is as it was")
        self.assertEqual(0, terminal.exit_code())

    def test_top(self):
        running = cluster.Cluster(self, servers=1)
        for columns, rows in [(80, 24), (200, 60)]:
            terminal = self.top(running, columns, rows)
            terminal.await_text(b"\033[1;1Hjob process-test, ")
            terminal.await_text(b"\033[%d;1H[1 groups]" % rows)
            terminal.type(b"2")
            terminal.await_text(b"server-0")
            terminal.type(b"3")
            terminal.await_text(b"[3 tables]")
            terminal.type(b"s")
            terminal.await_text(b"s by name")
            for width in range(96, 101):
                terminal.resize(width, 30)
                terminal.await_text(b"\033[2J")
            terminal.await_text(b"\033[30;1H 1 groups")
            terminal.type(b"q" if rows == 24 else b"\x03")
            self.ends(terminal)
        plain = self.run_to_end("covey top", [cluster.COVEY, "top", "--scheduler", running.address])
        self.assertEqual(0, plain.code, plain)
        plain.await_line("^server-0 ")
        self.assertNotIn("\033", str(plain))


if __name__ == "__main__":
    report.main()
