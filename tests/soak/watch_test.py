# SPDX-License-Identifier: Apache-2.0
"""The judges of soak tests, with series and lines that are made up; a real process that leaks."""

import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import unittest

from tests import report
from tests.soak import causes, chart, findings, flatness, sampler

_HOURS_4 = 4 * 3600
_QUARTERS = flatness.Quarters(0, _HOURS_4)
_TWO_PERCENT = flatness.Allowance()


def _series(figure, seconds=_HOURS_4, first=0, period=5):
    return [(first + at, figure(first + at)) for at in range(0, seconds, period)]


def _grows(figure, allowance=_TWO_PERCENT):
    return flatness.of_life("server-0: resident", _series(figure), _QUARTERS, allowance).grows


class FlatnessTest(unittest.TestCase):
    """Memory in KiB of a process that has 30 MiB."""

    def test_a_steady_process_is_flat(self):
        self.assertFalse(_grows(lambda _: 30 << 10))

    def test_warming_up_is_no_growth(self):
        self.assertFalse(_grows(lambda now: (30 << 10) * min(1, 0.5 + now / 3600)))

    def test_noise_and_peaks_are_no_growth(self):
        noise = random.Random(1)
        self.assertFalse(_grows(lambda now: (30 << 10) * noise.uniform(0.9, 1.1)
                                + (90 << 10) * (now > 12000 and now % 100 < 20)))

    def test_a_saw_tooth_is_no_growth(self):
        self.assertFalse(_grows(lambda now: (30 << 10) + now % 600))

    def test_falling_is_no_growth(self):
        self.assertFalse(_grows(lambda now: (30 << 10) - now / 10))

    def test_one_mebibyte_a_minute_is_growth(self):
        self.assertTrue(_grows(lambda now: (30 << 10) + 1024 * now / 60))

    def test_six_kibibytes_a_minute_are_growth(self):
        """720 KiB in the two hours between the middles of the quarters."""
        self.assertTrue(_grows(lambda now: (30 << 10) + 6 * now / 60))
        self.assertFalse(_grows(lambda now: (30 << 10) + 4 * now / 60))

    def test_steps_are_growth(self):
        self.assertTrue(_grows(lambda now: (30 << 10) + 1024 * (now // 3600)))

    def test_growth_with_noise_is_growth(self):
        noise = random.Random(1)
        self.assertTrue(_grows(lambda now: (30 << 10) * noise.uniform(0.9, 1.1) + now / 4))

    def test_an_open_file_an_hour_is_growth_beyond_an_amount(self):
        self.assertTrue(_grows(lambda now: 40 + now // 3600))
        self.assertFalse(_grows(lambda now: 40 + now // 3600, flatness.Allowance(0.02, 2)))

    def test_too_few_samples_are_not_judged(self):
        verdict = flatness.of_life("x", [(1, 2)], _QUARTERS, _TWO_PERCENT)
        self.assertFalse(verdict.is_judged)
        self.assertFalse(verdict.grows)
        self.assertIn("too little", str(verdict))


class RestartsTest(unittest.TestCase):
    """Processes that live for 90 s each, and are compared at an age of 20 s to 40 s."""

    def verdict(self, figure, seconds=90):
        """figure: of birth and age."""
        lives = [(born, _series(lambda now, born=born: figure(born, now - born), seconds, born))
                 for born in range(0, _HOURS_4 - 90, 90)]
        return flatness.of_lives("servers: resident", lives, _QUARTERS, (20, 40), _TWO_PERCENT)

    def test_the_same_growth_in_each_life_is_flat(self):
        self.assertFalse(self.verdict(lambda born, age: (20 << 10) + 100 * age).grows)

    def test_each_life_beginning_higher_is_growth(self):
        self.assertTrue(self.verdict(lambda born, age: (20 << 10) + born / 10).grows)

    def test_lives_that_end_early_are_not_judged(self):
        self.assertFalse(self.verdict(lambda born, age: born, seconds=30).is_judged)


class FindingsTest(unittest.TestCase):
    """A server that lives all the time and leaks, others that are restarted and do not."""

    @staticmethod
    def life(name, born, end, figure):
        life = sampler.Life("server", name, 7, born)
        for now in range(born, end, 5):
            life.add(now, {"resident": figure(now), "anonymous": 5, "files": 10, "threads": 3})
        return life

    def test_each_process_is_judged_in_its_way(self):
        lives = [self.life("server-0", 0, _HOURS_4, lambda now: 1000 + now)]
        lives += [self.life("server-1", born, born + 90, lambda now, born=born: 1000 + now - born)
                  for born in range(0, _HOURS_4, 90)]
        gauges = {"tables": ([(now, 5) for now in range(_HOURS_4)], flatness.Allowance(amount=0.5))}
        found = findings.verdicts(lives, gauges, _QUARTERS)
        self.assertEqual(9, len(found))
        self.assertEqual([True] * 9, [verdict.is_judged for verdict in found])
        self.assertEqual(["server-0: resident"],
                         [verdict.what for verdict in found if verdict.grows])
        with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as folder:
            findings.write(folder, "x", found, lives, [("visit", 1, 2, "")], 240)
            written = json.loads((pathlib.Path(folder) / "figures.json").read_text())
            drawn = (pathlib.Path(folder) / "memory.svg").read_text()
        self.assertEqual(9, len(written["verdicts"]))
        self.assertEqual(len(lives), drawn.count("<polyline"))


class SamplerTest(unittest.TestCase):
    """Of real processes."""

    _SAMPLES = 60

    def growth(self, mebibytes_per_minute):
        leaking = pathlib.Path(__file__).with_name("leaking_program.py")
        enough = threading.Event()
        with subprocess.Popen([sys.executable, leaking, str(mebibytes_per_minute), "1200"],
                              stdout=subprocess.PIPE) as child:
            self.addCleanup(child.kill)
            self.assertEqual(b"ready\n", child.stdout.readline())
            watch = sampler.Sampler(0.05, lambda late: None)
            watch.watch("leaker", "leaker", child.pid)

            def files():
                if len(watch.lives()[0].series("files")) >= self._SAMPLES:
                    enough.set()
                return sampler.folder_bytes("/nowhere")[1]

            watch.add_gauge("files", files)
            watch.start()
            self.assertTrue(enough.wait(60))
            watch.stop()
            child.kill()
        [life] = watch.lives()
        self.assertGreater(len(watch.gauge("files")), 10)
        self.assertLess(0, life.series("threads")[-1][1])
        return flatness.of_life("leaker", life.series("anonymous"),
                                flatness.Quarters(0, watch.now()), _TWO_PERCENT)

    def test_finds_a_leak_and_only_a_leak(self):
        self.assertTrue(self.growth(600).grows)
        self.assertFalse(self.growth(0).grows)

    def test_a_process_that_is_gone(self):
        child = subprocess.Popen(["true"])
        child.wait()
        self.assertIsNone(sampler.of_process(child.pid))


class JournalTest(unittest.TestCase):

    def setUp(self):
        self.time = 0
        self.journal = causes.Journal(lambda: self.time, [
            causes.Cause(r"server-\d", "replica_not_filled", ("kill_server",), 10)])

    def complain(self, name, event, level="warning"):
        child = type("Child", (), {"name": name})
        self.journal.read(child, "stderr", json.dumps({"level": level, "event": event}))

    def unexplained(self):
        return len(self.journal.unexplained())

    def test_information_needs_no_cause(self):
        self.complain("server-1", "joined", "info")
        self.assertEqual([], self.journal.complaints())

    def test_an_event_explains_its_lines_for_a_while(self):
        self.complain("server-1", "replica_not_filled")
        self.assertEqual(1, self.unexplained())
        self.time = 100
        over = self.journal.begin("kill_server")
        self.time = 150
        self.complain("server-1", "replica_not_filled")  # while it lasts
        over()
        self.time = 159
        self.complain("server-1", "replica_not_filled")
        self.assertEqual(1, self.unexplained())
        self.time = 161
        self.complain("server-1", "replica_not_filled")
        self.assertEqual(2, self.unexplained())

    def test_neither_other_lines_nor_other_events_nor_other_processes(self):
        self.journal.note("visit")
        self.complain("server-1", "replica_not_filled")
        self.journal.note("kill_server")
        self.complain("server-1", "shard_not_opened")
        self.complain("scheduler", "replica_not_filled")
        self.assertEqual(2, self.unexplained())

    def test_a_line_that_is_no_log_line_is_a_complaint(self):
        child = type("Child", (), {"name": "server-1"})
        self.journal.read(child, "stderr", "terminate called without an active exception")
        self.journal.read(child, "stdout", "a result")
        self.assertEqual(1, self.unexplained())


class ChartTest(unittest.TestCase):

    def test_has_a_line_for_each_process(self):
        with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as folder:
            path = pathlib.Path(folder) / "memory.svg"
            chart.write(path, "a <title>", {"server": [("server-0", [(0, 30), (60, 31)]),
                                                       ("server-1", [])], "empty": []},
                        [(30, "kill_server")], 1)
            drawn = path.read_text(encoding="utf-8")
        self.assertEqual(2, drawn.count("<polyline"))
        self.assertIn("a &lt;title&gt;", drawn)
        self.assertIn("kill_server", drawn)


if __name__ == "__main__":
    report.main()
