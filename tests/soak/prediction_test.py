# SPDX-License-Identifier: Apache-2.0
"""Runs of one to eight processes, and what `covey simulate` predicts from the times of their steps.

Links are given as a quiet machine of two cores has them. Where other programs take the cores, a run
is slower than predicted, because its computation waits and takes none.
"""

import dataclasses
import json
import os

from tests import report
from tests.process import cluster, network, network_cluster

_STEPS, _TENSORS = 150, 4
_TOLERANCE = 0.15
_MBIT = 10**6


@dataclasses.dataclass
class Run:
    """milliseconds: per sample; slow: as the option of `synthetic`."""
    groups: int
    members: int
    contract: str
    milliseconds: float
    gradient_mib: int = 4
    group_batch: int = 16
    slow: str = ""

    def command(self, trace):
        slow = ["--slow", self.slow] if self.slow else []
        return [cluster.SYNTHETIC, "--tensors", _TENSORS, "--tensor-kib",
                self.gradient_mib * 1024 // _TENSORS,
                "--group-batch", self.group_batch, "--milliseconds-per-sample", self.milliseconds,
                "--step-noise", 0.15, "--contract", self.contract, "--steps", _STEPS,
                "--step-trace", trace, *slow]


class PredictionTest(cluster.ProcessTest):
    def predicted(self, run, trace, *links):
        """Steps per second of each group."""
        simulation = self.run_to_end("covey simulate", [
            cluster.COVEY, "simulate", "--trace", trace, "--nodes", run.groups * run.members,
            "--groups", run.groups, "--servers", 1, "--gradient-mib", run.gradient_mib, "--tensors",
            _TENSORS, "--contract", run.contract, "--samples", run.group_batch // run.members,
            "--steps", _STEPS, "--message-us", 20, *links, "-o", "json"])
        self.assertEqual(0, simulation.code, simulation)
        [prediction] = json.loads("".join(simulation.lines("stdout")))["results"]
        return prediction["group_steps_per_second"]

    def compare(self, run, real, predicted):
        print(f"{run}: {sorted(real)} steps/s, predicted {sorted(predicted)}", flush=True)
        for reached, expected in zip(sorted(real), sorted(predicted), strict=True):
            self.assertAlmostEqual(1, expected / reached, delta=_TOLERANCE, msg=run)

    def check(self, run):
        trace = os.path.join(self.folder, "trace")
        result = self.result_of(run.groups, run.members, run.command(trace),
                                ["--stragglers", "off"])
        real = [group["steps_per_second"] for group in result["by_group"]]
        self.compare(run, real, self.predicted(
            run, trace, "--link-gbps", 5, "--server-gbps", 5, "--latency-us", 100,
            "--uplink-latency-us", 100, "--server-latency-us", 100))

    def test_one_worker(self):
        self.check(Run(1, 1, "bsp", 2))

    def test_two_members(self):
        self.check(Run(1, 2, "bsp", 5))

    def test_two_groups(self):
        self.check(Run(2, 2, "async", 5))

    def test_a_straggler(self):
        self.check(Run(2, 2, "buffered", 5, slow="3:2"))

    def test_rounds_of_eight_workers(self):
        self.check(Run(4, 2, "local:4", 10))

    def test_two_racks(self):
        """Two thirds of a step are communication over the uplinks."""
        run = Run(2, 2, "buffered", 5, gradient_mib=1)
        uplink = 100 * _MBIT
        racks = network.Racks(self, 2, 2, 1000 * _MBIT, uplink)
        nodes = [node for rack in racks.racks for node in rack]
        trace = os.path.join(self.folder, "trace")
        job = network_cluster.NetworkCluster(
            self, racks.outside, nodes, 2, labels=network_cluster.rack_labels(racks.racks),
            scheduler_options=["--stragglers", "off"])
        job.start(*run.command(trace))
        [result] = job.finish()
        racks.close()
        self.compare(run, [group["steps_per_second"] for group in result["by_group"]],
                     self.predicted(run, trace, "--racks", 2, "--link-gbps", 1, "--uplink-gbps",
                                    uplink / 1e9, "--server-gbps", 5, "--latency-us", 100,
                                    "--uplink-latency-us", 100, "--server-latency-us", 100))


if __name__ == "__main__":
    report.main()
