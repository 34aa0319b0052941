# SPDX-License-Identifier: Apache-2.0
"""Communication beside computation: how much of it is hidden, and what that costs.

Loopback is shaped, so that communication waits for the link and not for a processor.
"""

from tests import report
from tests.process import cluster, network

_MBIT = 10**6
_BITS = 200 * _MBIT


class LagTest(cluster.ProcessTest):
    """A lag of one step hides communication behind a whole step's computation."""

    # A step's computation takes somewhat longer than its communication.
    _COMPUTATION_SECONDS, _STEPS = 0.09, 60

    def step_seconds(self, lag, computation):
        result = self.result_of(1, 1, [
            cluster.SYNTHETIC, "--tensors", 4, "--tensor-kib", 256, "--contract", "bsp",
            "--steps", self._STEPS, "--group-batch", 1, "--lag", lag,
            "--milliseconds-per-sample", 1000 * computation], transport="tcp")
        return 1 / result["steps_per_second"]

    def test_hides_communication(self):
        network.shape_loopback(self, _BITS)
        communication = self.step_seconds(lag=0, computation=0)
        self.assertLess(communication, self._COMPUTATION_SECONDS)
        hidden = {}
        for lag in (0, 1):
            step = self.step_seconds(lag, self._COMPUTATION_SECONDS)
            hidden[lag] = (self._COMPUTATION_SECONDS + communication - step) / communication
            print(f"lag {lag}: step {step:.4f} s, communication alone {communication:.4f} s, "
                  f"{hidden[lag]:.3f} of it hidden", flush=True)
        self.assertGreaterEqual(hidden[1], 0.9)
        # Otherwise there was nothing to hide.
        self.assertLess(hidden[0], 0.9)

    def test_loses_little(self):
        losses = [self.result_of(1, 2, [
            cluster.FASHION_MNIST, "--contract", "bsp", "--epochs", 4, "--hidden", 64, "--batch", 64,
            "--fixed-split", "--learning-rate", 0.01, "--lag", lag])["train_loss"] for lag in (0, 1)]
        print(f"loss {losses[0]:.5f}, with a lag of one step {losses[1]:.5f}", flush=True)
        self.assertAlmostEqual(1, losses[1] / losses[0], delta=0.01)
        self.assertNotEqual(losses[0], losses[1])


class ProgressTest(cluster.ProcessTest):
    """A collective goes on while the program computes and makes no call."""

    # Both members compute, and each one's loop needs a processor beside that.
    _BYTES, _COMPUTATION, _BOUND = 2 << 20, 1.2, 1.3

    def seconds(self, computation, *options):
        result = self.result_of(1, 2, [
            cluster.ALL_REDUCE, "--bytes", self._BYTES, "--repetitions", 9,
            "--compute-milliseconds", 1000 * computation, *options], transport="tcp")
        self.assertEqual(0, result["error_max"])
        return result["seconds"]

    def test_goes_on_beside_a_computation(self):
        network.shape_loopback(self, _BITS)
        idle = self.seconds(0)
        computation = self._COMPUTATION * idle
        busy = self.seconds(computation) / idle
        after = self.seconds(computation, "--overlap=false") / idle
        print(f"alone {idle:.4f} s; with a computation of {self._COMPUTATION} times as long both "
              f"have ended after {busy:.3f} of it, and after {after:.3f} when the sum begins at the "
              f"end of the computation", flush=True)
        self.assertLess(busy, self._BOUND)
        self.assertGreater(after, self._BOUND)


if __name__ == "__main__":
    report.main()
