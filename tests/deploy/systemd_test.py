# SPDX-License-Identifier: Apache-2.0
"""The units of deploy/systemd: what systemd thinks of them, and whether programs take their settings."""

import pathlib
import re
import shutil
import subprocess
import unittest

from tests import report
from tests.process import cluster

_FOLDER = pathlib.Path(__file__).parents[2] / "deploy/systemd"
_UNITS = sorted(_FOLDER.glob("*.service"))
# In the words of systemd-analyze: 0 is none, 10 is all. The goal is 2.0.
_EXPOSURE_MAX = 2.0
# A worker is any program: it may use a GPU, and a just-in-time compiler.
_NOT_OF_WORKERS = {"DevicePolicy=closed", "MemoryDenyWriteExecute=yes", "PrivateDevices=yes"}


def _restrictions(unit):
    """The lines after the comment that begins them."""
    text = unit.read_text().split("# What it must not do")[1].split("[Install]")[0]
    return {line for line in text.splitlines() if re.match(r"[A-Z]\w+=", line)}


def _run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True)


class SystemdTest(cluster.ProcessTest):
    def test_there_are_units(self):
        self.assertEqual(["covey-scheduler.service", "covey-server@.service",
                          "covey-worker@.service"], [unit.name for unit in _UNITS])

    def test_services_reload_and_programs_of_users_do_not(self):
        # SIGHUP would end a worker.
        reload = r"^ExecReload=/bin/kill -HUP \$MAINPID$"
        self.assertEqual([True, True, False],
                         [bool(re.search(reload, unit.read_text(), re.M)) for unit in _UNITS])

    def test_servers_stop_after_workers_and_start_before_them(self):
        _, server, worker = texts = [unit.read_text() for unit in _UNITS]
        for text in texts:
            self.assertRegex(text, r"(?m)^Wants=.* covey\.target\b")
            self.assertRegex(text, r"(?m)^PartOf=covey\.target$")
            # So a stop of the target ends when all have ended.
            self.assertRegex(text, r"(?m)^After=.* covey\.target\b")
        self.assertRegex(server, r"(?m)^Wants=.*covey-servers\.target$")
        self.assertRegex(server, r"(?m)^Before=covey-servers\.target$")
        self.assertRegex(worker, r"(?m)^After=.*covey-servers\.target$")
        target = (_FOLDER / "covey-servers.target").read_text()
        self.assertIn("\nPartOf=covey.target\n", target)
        self.assertIn("\nStopWhenUnneeded=yes\n", target)

    def test_they_restrict_the_same(self):
        scheduler, server, worker = map(_restrictions, _UNITS)
        self.assertGreater(len(scheduler), 20)
        self.assertEqual(scheduler, server)
        self.assertEqual(scheduler - _NOT_OF_WORKERS, worker)

    @unittest.skipUnless(shutil.which("systemd-analyze"), "needs systemd-analyze")
    def test_they_are_little_exposed(self):
        for unit in _UNITS:
            run = _run("systemd-analyze", "security", "--offline=true", unit)
            found = re.search(r"Overall exposure level for .*: ([\d.]+)", run.stdout)
            self.assertIsNotNone(found, run)
            self.assertLessEqual(float(found.group(1)), _EXPOSURE_MAX, unit.name)

    @unittest.skipUnless(shutil.which("systemd-analyze"), "needs systemd-analyze")
    def test_systemd_knows_every_line(self):
        folder = pathlib.Path(self.folder)
        for unit in _UNITS:
            # The programs are not installed here.
            text = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", unit.read_text(), flags=re.M)
            (folder / unit.name.replace("@", "@0")).write_text(text)
        for target in _FOLDER.glob("*.target"):
            shutil.copy(target, folder)
        run = _run("systemd-analyze", "verify", "--man=no", *sorted(folder.glob("covey*")))
        # Other units of this machine are none of ours.
        ours = [line for line in run.stderr.splitlines() if "covey" in line]
        self.assertEqual([], ours)
        self.assertEqual(0, run.returncode, run.stderr)

    def test_programs_take_the_settings(self):
        for program, name in ((cluster.SCHEDULER, "scheduler"), (cluster.SERVER, "server")):
            text = (_FOLDER / f"{name}.yaml").read_text()
            # With the lines that the operator may take the mark away from.
            everything = pathlib.Path(self.folder) / f"{name}.yaml"
            everything.write_text(re.sub(r"^#(?=\w+:)", "", text, flags=re.M))
            for path in (_FOLDER / f"{name}.yaml", everything):
                run = self.run_to_end(name, [program, "--config", path, "--print-config"])
                self.assertEqual(0, run.code, run)

    def test_every_setting_of_the_environment_is_an_option(self):
        known = {"COVEY_WORKER_ARGUMENTS"}
        for program in (cluster.SERVER, cluster.FASHION_MNIST):
            known |= {"COVEY_" + name.upper().replace("-", "_")
                      for name in re.findall(r"--([\w-]+)", _run(program, "--help").stdout)}
        for path in sorted(_FOLDER.glob("*.env")):
            names = set(re.findall(r"^#?(COVEY_\w+)=", path.read_text(), re.M))
            self.assertNotEqual(set(), names)
            self.assertEqual(set(), names - known, path.name)


if __name__ == "__main__":
    report.main()
