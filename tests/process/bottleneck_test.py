# SPDX-License-Identifier: Apache-2.0
"""Where the time of a step goes: `covey run` names what is throttled, whatever it is."""

import re

from tests import report
from tests.process import cluster, network

_MBIT = 10**6
# A model of 256 KiB, and 20 examples per step.
_COMMAND = [cluster.SYNTHETIC, "--tensors", 4, "--tensor-kib", 64, "--group-batch", 20,
            "--contract", "bsp"]
# Milliseconds per example.
_COMPUTATION, _INPUT = 0.2, 0.1
_SLOW_COMPUTATION, _SLOW_INPUT = 2, 1
# Gradients and values of a step take some 70 ms.
_SLOW_BITS = 60 * _MBIT


class BottleneckTest(cluster.ProcessTest):
    """The same job each time, so that each case is the negative control of the others."""

    def bottleneck(self, *options, workers=1, steps=30, computation=_COMPUTATION, reading=_INPUT):
        run = self.start_run(1, workers, [
            *_COMMAND, "--steps", steps, "--milliseconds-per-sample", computation,
            "--input-milliseconds-per-sample", reading, *options], transport="tcp")
        self.assertEqual(0, run.exit_code(), run)
        [sentence] = [line for line in run.lines("stderr") if line.startswith("a step takes ")]
        print(sentence, flush=True)
        return re.search(r"; bottleneck: (\w+)", sentence).group(1)

    def test_slow_input(self):
        self.assertEqual("input", self.bottleneck(reading=_SLOW_INPUT))

    def test_a_slow_processor(self):
        self.assertEqual("computation", self.bottleneck(computation=_SLOW_COMPUTATION))

    def test_a_slow_link_to_the_servers(self):
        network.shape_loopback(self, _SLOW_BITS)
        self.assertEqual("servers", self.bottleneck())

    def test_a_slow_link_between_members(self):
        network.shape_loopback(self, _SLOW_BITS)
        self.assertEqual("group", self.bottleneck("--update-on-members", workers=2))


if __name__ == "__main__":
    report.main()
