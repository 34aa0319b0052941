# SPDX-License-Identifier: Apache-2.0
"""A real scheduler with many nodes that one program plays (many_nodes.cc), and what both cost."""

import collections
import json
import os

from tests.process import cluster, program

MANY_NODES = program.built("tests/process/many_nodes")

# Nodes of a job, and how long a node may be silent.
Size = collections.namedtuple("Size", "servers groups workers_per_group heartbeat silence_min")


def size_of(servers, groups, workers_per_group, heartbeat="500ms", silence_min="2500ms"):
    return Size(servers, groups, workers_per_group, heartbeat, silence_min)


def processor_seconds(child):
    """Of a running program, in user and in kernel mode together."""
    with open(f"/proc/{child.pid}/stat", encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Run:
    """Starts both programs; they end with `test`, a cluster.ProcessTest.

    seconds: in which heartbeats are counted.
    """

    def __init__(self, test, size, silent, seconds=5, deadline=60, holders=4):
        self._test, self._deadline = test, deadline
        self.nodes = size.servers + size.groups * size.workers_per_group
        self._port_file = os.path.join(test.folder, f"port-{self.nodes}")
        self._arguments = [
            cluster.SCHEDULER, "--job", cluster.JOB, "--servers", size.servers,
            "--groups", size.groups, "--workers", size.workers_per_group,
            "--heartbeat", size.heartbeat, "--silence-min", size.silence_min,
            "--log-file", os.path.join(test.folder, f"log-{self.nodes}"),
            "--port-file", self._port_file]
        port = self._start_scheduler()
        self._arguments += ["--port", port]
        self.player = test.start("many nodes", [
            MANY_NODES, "--scheduler", f"127.0.0.1:{port}", "--job", cluster.JOB,
            "--servers", size.servers, "--workers", size.groups * size.workers_per_group,
            "--silent", silent, "--holders", holders, "--duration", f"{seconds}s",
            "--deadline", f"{deadline}s"])

    def _start_scheduler(self):
        """Returns its port."""
        self.scheduler = self._test.start("scheduler", self._arguments)
        program.await_true(lambda: os.path.exists(self._port_file), f"a port of {self.scheduler}")
        with open(self._port_file, encoding="ascii") as file:
            return int(file.read())

    def restart_scheduler(self):
        """Kills it; another one goes on with its log at the same port."""
        self.scheduler.kill()
        os.unlink(self._port_file)
        self._start_scheduler()

    def await_phase(self, name):
        """What the program says of this phase; with what the scheduler has cost so far."""
        pattern = rf'^{{"phase":"{name}".*}}$'
        facts = json.loads(self.player.await_line(pattern, 5 * self._deadline).group())
        del facts["phase"]
        return {**facts, "scheduler_processor_s": processor_seconds(self.scheduler),
                "scheduler_mib": self.scheduler.memory_kib() // 1024}

    def figures(self):
        """Of all phases."""
        registered = self.await_phase("registered")
        before = self.await_phase("beats")["scheduler_processor_s"]
        beaten = self.await_phase("beaten")
        beaten["scheduler_processor_s"] -= before
        beaten["scheduler_processor_us_per_beat"] = round(
            1e6 * beaten["scheduler_processor_s"] / beaten["replies"], 1)
        before = processor_seconds(self.scheduler)
        silenced = self.await_phase("silenced")
        silenced["scheduler_processor_s"] -= before
        return {"registered": registered, "beaten": beaten, "silenced": silenced}
