# SPDX-License-Identifier: Apache-2.0
"""A Slurm of three nodes on this machine, for tests: Debian's packages, as root."""

import os
import pathlib
import shutil
import socket
import subprocess
import tempfile

from tests.process import etcd, program

_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_NEEDED = ("munged", "slurmctld", "slurmd", "sbatch")
_ABSENT = [name for name in _NEEDED if not shutil.which(name, path=_PATH)]
MISSING = ("needs root" if os.geteuid() != 0 else
           "needs Debian's slurmctld, slurmd, slurm-client, munge" if _ABSENT else None)

NODES = ("n1", "n2", "n3")

# Two racks: n1 and n2 are in one.
_TOPOLOGY = """\
SwitchName=rack0 Nodes=n[1-2]
SwitchName=rack1 Nodes=n3
SwitchName=spine Switches=rack[0-1]
"""


class Slurm:
    """Starts at once; ends with `test`, a ProcessTest."""

    def __init__(self, test):
        self._test = test
        # Short: the path of a socket has 107 bytes at most.
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix="covey-slurm-", dir="/tmp"))
        test.addCleanup(shutil.rmtree, self._folder, ignore_errors=True)
        self._configure()
        key = self._folder / "munge/key"
        self._start("munged", "--foreground", "--force", f"--key-file={key}",
                    *[f"--{what}={self._folder}/munge/{name}" for what, name in (
                        ("socket", "socket"), ("pid-file", "pid"), ("log-file", "log"),
                        ("seed-file", "seed"))])
        program.await_true((self._folder / "munge/socket").exists, "a socket of munged")
        self._start("slurmctld", "-D", "-c", "-f", self._folder / "slurm.conf")
        for node in NODES:
            self._start("slurmd", "-D", "-N", node, "-f", self._folder / "slurm.conf")
        # Before the daemons end, which tasks would outlive.
        test.addCleanup(self._end_jobs)
        program.await_true(lambda: self.run("sinfo", "--noheader", "--format=%t %D") == "idle 3",
                           "three idle nodes")

    def _start(self, name, *arguments):
        return self._test.start(name, [shutil.which(name, path=_PATH), *arguments],
                                {"PATH": _PATH})

    def _end_jobs(self):
        jobs = self.run("squeue", "--noheader", "--format=%i").split()
        for job in jobs:
            self.run("scancel", "--signal=KILL", "--full", job)
        program.await_true(lambda: not self.run("squeue", "--noheader"), f"the end of {jobs}")

    def _configure(self):
        folder, host = self._folder, socket.gethostname().split(".")[0]
        (folder / "munge").mkdir(mode=0o700)
        (folder / "munge/key").write_bytes(os.urandom(1024))
        (folder / "munge/key").chmod(0o600)
        (folder / "topology.conf").write_text(_TOPOLOGY)
        control, *ports = etcd.free_ports(1 + len(NODES))
        settings = {
            "ClusterName": "test", "SlurmctldHost": f"{host}(127.0.0.1)",
            "SlurmctldPort": control, "SlurmUser": "root",
            "AuthInfo": f"socket={folder}/munge/socket", "MpiDefault": "none",
            "StateSaveLocation": f"{folder}/state", "SlurmdSpoolDir": f"{folder}/spool.%n",
            "SlurmctldPidFile": f"{folder}/slurmctld.pid",
            "SlurmdPidFile": f"{folder}/slurmd.%n.pid", "ReturnToService": 2,
            "SlurmdParameters": "config_overrides", "ProctrackType": "proctrack/linuxproc",
            "TaskPlugin": "task/none", "JobAcctGatherType": "jobacct_gather/none",
            "SelectType": "select/cons_tres", "SelectTypeParameters": "CR_Core",
            "TopologyPlugin": "topology/tree",
        }
        lines = [f"{name}={value}" for name, value in settings.items()]
        lines += [f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=8 "
                  "RealMemory=1000" for node, port in zip(NODES, ports)]
        lines.append(f"PartitionName=all Nodes={','.join(NODES)} Default=YES State=UP")
        (folder / "slurm.conf").write_text("\n".join(lines) + "\n")
        (folder / "state").mkdir()
        for node in NODES:
            (folder / f"spool.{node}").mkdir()

    def run(self, *command, folder=None):
        """The output of one of Slurm's commands, which must succeed."""
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=folder,
            env={"PATH": _PATH, "SLURM_CONF": str(self._folder / "slurm.conf"),
                 "LC_ALL": "C.UTF-8"})
        if done.returncode:
            raise AssertionError(f"{command}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout.strip()

    def submit(self, script, folder, *options):
        """The number of the new job."""
        return self.run("sbatch", "--parsable", *options, script, folder=folder)

    def state(self, job):
        """The state of a job, and its exit code, as in "COMPLETED 0:0"."""
        shown = dict(word.split("=", 1) for word in self.run(
            "scontrol", "show", "job", job, "--oneliner").split(" ") if "=" in word)
        return f"{shown['JobState']} {shown['ExitCode']}"

    def await_end(self, job, seconds=4 * program.PATIENCE_SECONDS):
        """Its state when it has ended."""
        program.await_true(lambda: self.state(job).split()[0] not in (
            "PENDING", "CONFIGURING", "RUNNING", "COMPLETING"), f"the end of job {job}", seconds)
        return self.state(job)

    def end(self, job):
        """Signals the batch script of a job, as Slurm does before its time is over."""
        self.run("scancel", "--batch", "--signal=TERM", job)
