# SPDX-License-Identifier: Apache-2.0
"""Fashion-MNIST on four workers of unequal speed in two racks: groups that the scheduler plans,
groups that a person would order, and one group that waits for its slowest member.
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
# What every run must reach in its passes; and the time of planned groups over that of the best ones
# that were ordered, which includes the seconds until the plan.
_ACCURACY_MIN, _TIME_MAX = 0.88, 1.1
# Of planned groups over one group in which all wait for a worker that is four times slower.
_SPEEDUP_MIN = 1.66
_COMMAND = [cluster.FASHION_MNIST, "--epochs", 12, "--batch", 16, "--hidden", 48]
_PATIENCE_SECONDS = 900
_BY_RACK = [f"site/rack-{rank % 2}/host-{rank}" for rank in range(4)]


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
    def seconds(self, groups, labels, slow=(1, 3), options=(), scheduler_options=()):
        """Of a run that must be accurate. labels: of each rank; slow: the slowed ranks."""
        racks = network.Racks(self, _RACKS, _NODES, _RACK_BITS, _UPLINK_BITS)
        nodes = [node for column in zip(*racks.racks) for node in column]
        run = network_cluster.NetworkCluster(self, racks.outside, nodes, groups, labels=labels,
                                             scheduler_options=scheduler_options)
        run.start(*_COMMAND, *options)
        with Slowed([run.workers[rank] for rank in slow]):
            results = run.finish(_PATIENCE_SECONDS)
        racks.close()
        seconds = max(result["train_seconds"] for result in results)
        accuracy = min(result["test_accuracy"] for result in results)
        print(f"{groups} groups, {labels}, {slow} slowed, {' '.join(options)}: {seconds:.1f} s, "
              f"accuracy {accuracy:.4f}", flush=True)
        self.assertGreater(accuracy, _ACCURACY_MIN)
        return seconds

    def test_are_about_as_fast_as_the_best_that_were_ordered(self):
        across = [f"site/rack-{rank // 2}/host-{rank}" for rank in range(4)]
        ordered = min(self.seconds(1, _BY_RACK), self.seconds(2, _BY_RACK),
                      self.seconds(2, across), self.seconds(4, _BY_RACK))
        planned = self.seconds("auto", [f"site//host-{rank}" for rank in range(4)])
        self.assertLess(planned, _TIME_MAX * ordered)

    def test_with_one_slow_worker_are_faster_than_one_group_that_waits(self):
        together = self.seconds(1, _BY_RACK, slow=[3], options=["--contract=bsp"],
                                scheduler_options=["--stragglers", "off"])
        planned = self.seconds("auto", _BY_RACK, slow=[3])
        self.assertLess(planned * _SPEEDUP_MIN, together)


if __name__ == "__main__":
    report.main()
