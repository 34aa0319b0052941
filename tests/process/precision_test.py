# SPDX-License-Identifier: Apache-2.0
"""Gradients and values in fewer bits: bytes saved on the wire, and the cost in loss."""

from tests import report
from tests.process import cluster, network, network_cluster

# Bytes per element.
_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "int8": 1 + 4 / 256,
          "scaled-float16": 2 + 4 / 256, "float8": 1 + 4 / 256, "topk": 20 / 256}
# The largest difference of the loss from that of float32.
_LOSS_TOLERANCE = {"float16": 0.005, "bfloat16": 0.005, "int8": 0.01, "scaled-float16": 0.005,
                   "float8": 0.01}
# The same of values on their way back, which have no error feedback.
_VALUE_TOLERANCE = {"float16": 0.005, "bfloat16": 0.005, "scaled-float16": 0.005, "int8": 0.01,
                    "float8": 0.01}


class LossTest(cluster.ProcessTest):
    """The loss of Fashion-MNIST under bsp, where runs differ only in the format."""

    @staticmethod
    def command(wire, scale, value_wire="float32"):
        return [cluster.FASHION_MNIST, "--contract", "bsp", "--epochs", 2, "--hidden", 64,
                "--batch", 64, "--wire", wire, "--value-wire", value_wire, "--loss-scale", scale,
                # Each worker gets the same samples in each run.
                "--fixed-split",
                # Small, so that rounding does not lead to a different minimum.
                "--learning-rate", 0.02]

    def loss(self, wire, scale=1, value_wire="float32"):
        result = self.result_of(1, 2, self.command(wire, scale, value_wire))
        print(f"{wire}, values in {value_wire}, loss times {scale}: "
              f"loss {result['train_loss']:.5f}, test accuracy {result['test_accuracy']}",
              flush=True)
        return result["train_loss"]

    def test_fewer_bits_lose_little(self):
        exact = self.loss("float32")
        for wire, tolerance in _LOSS_TOLERANCE.items():
            with self.subTest(wire):
                loss = self.loss(wire)
                self.assertAlmostEqual(1, loss / exact, delta=tolerance)
                # Otherwise the format was not used.
                self.assertNotEqual(exact, loss)
        for value_wire, tolerance in _VALUE_TOLERANCE.items():
            with self.subTest(values=value_wire):
                loss = self.loss("float32", value_wire=value_wire)
                self.assertAlmostEqual(1, loss / exact, delta=tolerance)
                self.assertNotEqual(exact, loss)

    def test_gradients_of_any_size_need_no_common_scale(self):
        # The scale with which PyTorch's GradScaler begins. Sums over a step's samples pass 65504.
        scale = 2 ** 16
        exact = self.loss("float32", scale)
        for wire in ("scaled-float16", "float8"):
            self.assertAlmostEqual(1, self.loss(wire, scale) / exact, delta=_LOSS_TOLERANCE[wire])
        # Otherwise the gradients are of a size that needs no scale.
        run = self.start_run(1, 2, self.command("float16", scale))
        self.assertEqual(1, run.exit_code(), run)
        self.assertTrue(any("inf at element" in line for line in run.lines("stderr")), run)


class BytesTest(cluster.ProcessTest):
    """Bytes between a worker and its server per step, counted at the worker's network interface."""

    _TENSORS, _TENSOR_KIB = 4, 64

    def transferred(self, steps, options):
        """Bytes that (left, reached) the worker."""
        racks = network.Racks(self, 1, 1, 10**9, 10**9)
        run = network_cluster.NetworkCluster(self, racks.outside, racks.nodes, groups=1)
        run.start(cluster.SYNTHETIC, "--tensors", self._TENSORS, "--tensor-kib", self._TENSOR_KIB,
                  "--steps", steps, "--milliseconds-per-sample", 0, *options)
        run.finish()
        [both] = racks.uplink_bytes()
        racks.close()
        return both

    def check_bytes(self, direction, bytes_per_element, *options):
        elements = self._TENSORS * self._TENSOR_KIB * 1024 // 4
        few, many = 10, 60
        per_step = (self.transferred(many, options)[direction]
                    - self.transferred(few, options)[direction]) / (many - few)
        expected = elements * bytes_per_element
        print(f"{' '.join(options)}: {per_step:.0f} bytes per step; {expected:.0f} without headers",
              flush=True)
        # Headers, and acknowledgments of what goes the other way.
        self.assertGreaterEqual(per_step, expected)
        self.assertLess(per_step, 1.05 * expected + 3000)

    def test_fewer_bits_are_fewer_bytes(self):
        for wire, bytes_per_element in _BYTES.items():
            with self.subTest(wire):
                self.check_bytes(0, bytes_per_element, "--wire", wire)

    def test_values_in_fewer_bits_are_fewer_bytes(self):
        for wire in ("float32", "bfloat16", "int8"):
            with self.subTest(wire):
                self.check_bytes(1, _BYTES[wire], "--value-wire", wire)


if __name__ == "__main__":
    report.main()
