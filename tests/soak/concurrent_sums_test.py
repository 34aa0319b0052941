# SPDX-License-Identifier: Apache-2.0
"""Sums of different tensors at the same time, where one of them does not fill the link."""

from tests import report
from tests.process import cluster, network, network_cluster

_TENSORS = 2


class ConcurrentSumsTest(cluster.ProcessTest):

    def share(self, all_reduce):
        """The time of all sums at once, relative to that of one after another.

        all_reduce: returns the result of the program, run with options.
        """
        seconds = {}
        for at_once in ("true", "false"):
            result = all_reduce("--tensors", _TENSORS, f"--at-once={at_once}")
            self.assertEqual((0, _TENSORS), (result["error_max"], result["tensors"]))
            seconds[at_once] = result["seconds"]
        share = seconds["true"] / seconds["false"]
        print(f"{_TENSORS} sums of {result['bytes'] // _TENSORS >> 10} KiB: {seconds['true']:.4f} s at once, "
              f"{seconds['false']:.4f} s one after another: {share:.3f}", flush=True)
        return share

    def test_share_the_latency_of_a_link(self):
        def all_reduce(*options):
            relayed = network.Relayed(self, ["outside", "worker-0", "worker-1"])
            run = network_cluster.NetworkCluster(
                self, relayed.nodes["outside"],
                [relayed.nodes[f"worker-{rank}"] for rank in range(2)], groups=1)
            relayed.fault("delay", "*", by="20ms")
            [result] = run.start(cluster.ALL_REDUCE, "--bytes", "64KiB", "--repetitions", 51,
                                 *options).finish(240)
            relayed.close()
            return result

        self.assertLess(self.share(all_reduce), 0.65)

    def test_gain_nothing_where_one_fills_the_link(self):
        """Without this the test above would prove nothing."""
        network.shape_loopback(self, 50 * 10**6)

        def all_reduce(*options):
            return self.result_of(1, 2, [cluster.ALL_REDUCE, "--bytes", "2MiB", "--repetitions", 7,
                                         *options], transport="tcp")

        self.assertGreater(self.share(all_reduce), 0.85)


if __name__ == "__main__":
    report.main()
