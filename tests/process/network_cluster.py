# SPDX-License-Identifier: Apache-2.0
"""A cluster whose processes run on the machines of a network (network.py)."""

import json
import os

from tests.process import cluster, program

_HEARTBEAT = "500ms"
# Heartbeats share shaped links with tensors, and machines are busy: no node is dead this soon.
_SILENCE_MIN = "20s"


class NetworkCluster:
    """Scheduler and servers on `outside`, one worker on each of `nodes`; `test` ends it.

    groups: their number, or "auto". `labels`: for each node, or None.
    """

    def __init__(self, test, outside, nodes, groups, servers=1, labels=None, scheduler_options=()):
        self._test = test
        self._nodes = nodes
        self._labels = labels
        self._groups = groups
        port_file = os.path.join(test.folder, f"port-{os.urandom(4).hex()}")
        workers = len(nodes) if groups == "auto" else len(nodes) // groups
        scheduler = test.start("scheduler", [
            *outside.command(), cluster.SCHEDULER, "--job", cluster.JOB, "--servers", servers,
            "--groups", groups, "--workers", workers, "--host", outside.address,
            "--insecure", "--port-file", port_file, "--heartbeat", _HEARTBEAT, "--silence-min", _SILENCE_MIN,
            *scheduler_options])
        program.await_true(lambda: os.path.exists(port_file) or not scheduler.running(),
                           f"a port file of {scheduler}")
        with open(port_file, encoding="ascii") as file:
            self.address = f"{outside.address}:{int(file.read())}"
        self.servers = [test.start(f"server-{rank}", [
            *outside.command(), cluster.SERVER, "--scheduler", self.address, "--job", cluster.JOB,
            "--rank", rank, "--data-host", outside.address, "--insecure",
            "--loops", 1])
            for rank in range(servers)]
        self.scheduler = scheduler
        self.workers = []

    def start(self, *command):
        """Starts the workers, one per node; ranks are in the order of nodes."""
        for rank, node in enumerate(self._nodes):
            environment = {
                "COVEY_SCHEDULER": self.address, "COVEY_JOB": cluster.JOB,
                "COVEY_RANK": str(rank), "COVEY_DATA_HOST": node.address,
                "COVEY_INSECURE": "true"}
            if self._labels is not None:
                environment["COVEY_LABELS"] = self._labels[rank]
            self.workers.append(self._test.start(
                f"worker-{rank}", [*node.command(), *command], environment))
        return self

    def finish(self, seconds=program.PATIENCE_SECONDS):
        """The results that workers printed, in order of rank, once all have ended with success."""
        results = []
        for worker in self.workers:
            self._test.assertEqual(0, worker.exit_code(seconds), worker)
            results += [json.loads(line.removeprefix("result ")) for line in worker.lines("stdout")
                        if line.startswith("result ")]
        for child in (*self.servers, self.scheduler):
            child.kill()
        return results


def rack_labels(racks):
    """Labels of the nodes of a Racks, rack by rack."""
    return [f"site/rack-{rack}/host-{rack}-{index}"
            for rack, nodes in enumerate(racks) for index in range(len(nodes))]
