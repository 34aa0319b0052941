# SPDX-License-Identifier: Apache-2.0
"""Small tensors in buckets, over links with latency."""

from tests import report
from tests.process import cluster, network, network_cluster


class FusionTest(cluster.ProcessTest):
    _TENSORS, _TENSOR_KIB = 1000, 4

    def step_seconds(self, steps, *options):
        """Two workers and a server, each on a machine of its own; any way takes 1 ms."""
        relayed = network.Relayed(self, ["outside", "worker-0", "worker-1"])
        run = network_cluster.NetworkCluster(
            self, relayed.nodes["outside"],
            [relayed.nodes[f"worker-{rank}"] for rank in range(2)], groups=1)
        relayed.fault("delay", "*", by="1ms")
        run.start(cluster.SYNTHETIC, "--tensors", self._TENSORS, "--tensor-kib", self._TENSOR_KIB,
                  "--steps", steps, "--milliseconds-per-sample", 0, "--contract", "bsp", *options)
        [result] = run.finish(240)
        self.assertLess(result["distance"], 1)
        relayed.close()
        return 1 / result["steps_per_second"]

    def test_buckets_are_faster_than_tensors_one_by_one(self):
        fused = self.step_seconds(40)
        alone = self.step_seconds(10, "--bucket-kib", 0)
        print(f"{self._TENSORS} tensors of {self._TENSOR_KIB} KiB: {fused:.4f} s per step in "
              f"buckets, {alone:.4f} s one by one, {alone / fused:.1f} times as long", flush=True)
        self.assertGreater(alone / fused, 20)


if __name__ == "__main__":
    report.main()
