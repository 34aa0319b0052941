# SPDX-License-Identifier: Apache-2.0
"""Fashion-MNIST on four workers of unequal speed in two racks: groups that the scheduler plans, and
groups that a person would order.
"""

import signal
import threading

from tests import report
from tests.process import cluster, network, network_cluster

_MBIT = 10**6
_RACKS, _NODES = 2, 2
_RACK_BITS, _UPLINK_BITS = 1000 * _MBIT, 200 * _MBIT
# Odd ranks are in rack 1, and stopped for this part of each period.
_PERIOD_SECONDS, _STOPPED = 0.02, 0.75
_ACCURACY_MIN = 0.86
# The time of the planned groups over that of the best ones that were ordered; it includes the
# seconds until the plan.
_TIME_MAX = 1.1
_COMMAND = [cluster.FASHION_MNIST, "--epochs", 6, "--batch", 16, "--hidden", 48]


class Slowed:
    """Stops programs for a part of the time, for as long as a `with` block lasts."""

    def __init__(self, programs):
        self._programs = programs
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        while not self._over.wait(_PERIOD_SECONDS * (1 - _STOPPED)):
            self._signal(signal.SIGSTOP)
            self._over.wait(_PERIOD_SECONDS * _STOPPED)
            self._signal(signal.SIGCONT)

    def _signal(self, number):
        for program in self._programs:
            if program.running():
                program.signal(number)

    def __enter__(self):
        self._thread.start()

    def __exit__(self, *unused):
        self._over.set()
        self._thread.join()


class PlannedGroupsTest(cluster.ProcessTest):
    def seconds(self, groups, labels):
        """Of a run that must be accurate. labels: of each rank."""
        racks = network.Racks(self, _RACKS, _NODES, _RACK_BITS, _UPLINK_BITS)
        nodes = [node for column in zip(*racks.racks) for node in column]
        run = network_cluster.NetworkCluster(self, racks.outside, nodes, groups, labels=labels)
        run.start(*_COMMAND)
        with Slowed([run.workers[1], run.workers[3]]):
            results = run.finish(600)
        racks.close()
        seconds = max(result["train_seconds"] for result in results)
        accuracy = min(result["test_accuracy"] for result in results)
        print(f"{groups} groups, {labels}: {seconds:.1f} s, accuracy {accuracy:.4f}", flush=True)
        self.assertGreater(accuracy, _ACCURACY_MIN)
        return seconds

    def test_are_about_as_fast_as_the_best_that_were_ordered(self):
        by_rack = [f"site/rack-{rank % 2}/host-{rank}" for rank in range(4)]
        across = [f"site/rack-{rank // 2}/host-{rank}" for rank in range(4)]
        ordered = min(self.seconds(1, by_rack), self.seconds(2, by_rack), self.seconds(2, across),
                      self.seconds(4, by_rack))
        planned = self.seconds("auto", [f"site//host-{rank}" for rank in range(4)])
        self.assertLess(planned, _TIME_MAX * ordered)


if __name__ == "__main__":
    report.main()
