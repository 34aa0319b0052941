# SPDX-License-Identifier: Apache-2.0
"""Autotuning: the settings that a group finds, against a grid measured in the same run."""

import json
import re

from tests import report
from tests.process import cluster, network, network_cluster, program

_WORKER = program.built("tests/soak/tuned_worker")
_ALGORITHMS = ("direct", "ring", "halving-doubling", "tree")
_SECONDS = 400
_MEMBERS = 3
# Loopback is one link for all members' bytes.
_SLOW_BITS = 200 * 10**6


class AutotuneTest(cluster.ProcessTest):
    # Many small tensors and a few large ones would not differ: these travel alone by default.
    _MODEL = ("--tensors", 24, "--tensor-kib", 64)

    def assert_tuned(self, run):
        """`run`: gives the workers' result and what they log, from options of the program."""
        grid = {}
        for algorithm in _ALGORITHMS:
            rates, _ = run(*self._MODEL, "--collective", algorithm)
            grid |= {(algorithm, int(bytes_)): rate for bytes_, rate in rates.items()}
        tuned, log = run(*self._MODEL, "--autotune")
        for (algorithm, bytes_), rate in sorted(grid.items(), key=lambda point: -point[1]):
            print(f"{rate:9.2f} steps/s  {algorithm}, buckets of {bytes_} bytes")
        best, worst = max(grid.values()), min(grid.values())
        [chosen] = [line for line in log if "step_tuned" in line]
        print(f"tuned {tuned['tuned']:.2f} steps/s: {chosen}", flush=True)
        self.assertGreaterEqual(tuned["tuned"], 0.9 * best)
        # Otherwise there was nothing to find.
        self.assertLess(worst, 0.75 * best)
        trials = int(re.search(r'"?trials"?[=:] ?"?(\d+)', chosen)[1])
        self.assertLessEqual(trials, 30)

    def on_loopback(self, *options):
        run = self.start_run(1, _MEMBERS, [_WORKER, *options], transport="tcp")
        self.assertEqual(0, run.exit_code(_SECONDS), run)
        [result] = [line for line in run.lines("stdout") if "result " in line]
        return json.loads(result[result.index("{"):]), run.lines()

    def test_on_a_fast_link(self):
        self.assert_tuned(self.on_loopback)

    def test_on_a_slow_link(self):
        network.shape_loopback(self, _SLOW_BITS)
        self.assert_tuned(self.on_loopback)

    def test_on_a_link_with_latency(self):
        relayed = network.Relayed(self, ["outside", *(f"worker-{i}" for i in range(_MEMBERS))])
        relayed.fault("delay", "*", by="5ms")

        def run(*options):
            outside, *nodes = relayed.nodes.values()
            running = network_cluster.NetworkCluster(self, outside, nodes, 1)
            running.start(_WORKER, *options)
            [result] = running.finish(_SECONDS)
            return result, [line for worker in running.workers for line in worker.lines()]

        self.assert_tuned(run)


if __name__ == "__main__":
    report.main()
