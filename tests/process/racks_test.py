"""Two racks behind slow uplinks: what crosses them, and how long that takes."""

import unittest

from tests.process import cluster, network, network_cluster

_MBIT = 10**6
_RACK_BITS = 400 * _MBIT
# A tenth: machines can talk faster within a rack than out of it.
_UPLINK_BITS = 40 * _MBIT
_RACKS, _NODES = 2, 4

_TENSORS, _TENSOR_KIB = 4, 64
_MODEL_BYTES = _TENSORS * _TENSOR_KIB * 1024


class HybridTrafficTest(cluster.ProcessTest):
    """What each rack sends to the servers, and gets from them, for one more step."""

    def uplink_bytes(self, groups, steps):
        """For each rack, bytes that (left, reached) it during a run."""
        racks = network.Racks(self, _RACKS, _NODES, _RACK_BITS, _UPLINK_BITS)
        run = network_cluster.NetworkCluster(
            self, racks.outside, racks.nodes, groups,
            labels=network_cluster.rack_labels(racks.racks))
        run.start(cluster.SYNTHETIC, "--tensors", _TENSORS, "--tensor-kib", _TENSOR_KIB,
                  "--steps", steps, "--milliseconds-per-sample", 0)
        [result] = run.finish()
        self.assertLess(result["distance"], 1)
        used = racks.uplink_bytes()
        racks.close()
        return used

    def bytes_per_step(self, groups):
        """For each rack (left, reached); what a run costs besides its steps does not count."""
        few, many = 5, 35
        before, after = self.uplink_bytes(groups, few), self.uplink_bytes(groups, many)
        return [tuple((last - first) / (many - few) for first, last in zip(*rack))
                for rack in zip(before, after)]

    def test_a_group_sends_its_gradient_once_however_many_members_it_has(self):
        for left, reached in self.bytes_per_step(groups=_RACKS):
            print(f"one group per rack: {left / _MODEL_BYTES:.3f} models left per step, "
                  f"{reached / _MODEL_BYTES:.3f} reached")
            self.assertAlmostEqual(1, left / _MODEL_BYTES, delta=0.05)
            self.assertAlmostEqual(1, reached / _MODEL_BYTES, delta=0.05)

    def test_groups_of_one_send_it_each(self):
        """Or the test above would prove nothing."""
        for left, reached in self.bytes_per_step(groups=_RACKS * _NODES):
            print(f"four groups per rack: {left / _MODEL_BYTES:.3f} models left per step, "
                  f"{reached / _MODEL_BYTES:.3f} reached")
            self.assertAlmostEqual(_NODES, left / _MODEL_BYTES, delta=0.05 * _NODES)
            self.assertAlmostEqual(_NODES, reached / _MODEL_BYTES, delta=0.05 * _NODES)


if __name__ == "__main__":
    unittest.main()
