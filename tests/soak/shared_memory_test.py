# SPDX-License-Identifier: Apache-2.0
"""A reduction between the processes of one host, beside the speed of a copy in memory."""

import json
import os

from tests import report
from tests.process import cluster, network

_MEMBERS, _BYTES, _REPETITIONS = 4, 64 << 20, 9
# Bytes that go from process to process, relative to the data of a member: each sends three quarters
# of its own to the members that add them up, and its quarter of the sums to three others. The sender
# copies them, and the receiver adds or copies them.
_CARRIED = 2 * (_MEMBERS - 1)


class SharedMemoryTest(cluster.ProcessTest):
    def reduce(self, transport):
        """(seconds, bytes over loopback relative to the data of a member) of an all-reduce."""
        before = network.loopback_bytes()
        result = self.result_of(1, _MEMBERS, [
            cluster.ALL_REDUCE, "--bytes", _BYTES, "--repetitions", _REPETITIONS],
            transport=transport)
        self.assertEqual(0, result["error_max"])
        # Each repetition, and the one that is not measured.
        sent = (network.loopback_bytes() - before) / (_REPETITIONS + 1) / _BYTES
        return result["seconds"], sent

    def copy_seconds(self):
        """One thread copies the data of a member."""
        run = self.run_to_end("bench", [
            cluster.COVEY, "bench", "--blocks", "memory", "--transport", "ipc", "-o", "json"],
            seconds=300)
        self.assertEqual(0, run.code, run)
        [copy] = [row for row in json.loads("".join(run.lines("stdout")))["figures"]
                  if row["what"] == "memory copy"]
        return _BYTES / copy["median"] / 1e9

    def test_reduces_at_the_speed_of_copies_and_without_sockets(self):
        network.enter()
        copy = self.copy_seconds()
        seconds, sent = self.reduce("auto")
        _, over_tcp = self.reduce("tcp")
        speed = _CARRIED * copy / seconds
        print(f"{_MEMBERS} members reduce {_BYTES >> 20} MiB in {1000 * seconds:.1f} ms on "
              f"{os.cpu_count()} processors, one thread copies as much in {1000 * copy:.1f} ms; "
              f"between processes {speed:.2f} of the speed of a copy; over loopback {sent:.4f} of "
              f"the data, {over_tcp:.2f} with TCP", flush=True)
        self.assertGreater(speed, 0.6)
        self.assertLess(sent, 0.001)
        # Otherwise loopback was not what would have carried it.
        self.assertAlmostEqual(_CARRIED, over_tcp, delta=0.1)


if __name__ == "__main__":
    report.main()
