# SPDX-License-Identifier: Apache-2.0
"""A reduction between the processes of one host, beside the speed of a copy in memory."""

import json
import os

from tests import report
from tests.process import cluster, network

_MEMBERS, _BYTES, _REPETITIONS = 4, 64 << 20, 9
# Each member copies three quarters of its data to the others, adds three quarters of what it owns
# from them, and sends and gets three quarters of the sums: four times 3/4 of the data.
_COPIES = _MEMBERS * 4 * 3 / 4


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
        lanes = min(_MEMBERS, os.cpu_count())
        of_copies = _COPIES * copy / lanes / seconds
        print(f"{_MEMBERS} members reduce {_BYTES >> 20} MiB in {1000 * seconds:.1f} ms, "
              f"{copy / seconds:.2f} of the speed of one copy; {_COPIES:.0f} copies on {lanes} "
              f"processors take {of_copies:.2f} of that time; over loopback {sent:.4f} of the data, "
              f"{over_tcp:.2f} with TCP", flush=True)
        self.assertGreater(of_copies, 0.6)
        self.assertLess(sent, 0.001)
        # Otherwise loopback was not what would have carried it.
        self.assertGreater(over_tcp, _MEMBERS)


if __name__ == "__main__":
    report.main()
