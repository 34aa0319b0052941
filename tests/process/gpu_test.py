# SPDX-License-Identifier: Apache-2.0
"""Servers with tables in the memory of a GPU share chains with others, and hold the same bits.

Runs where there is a GPU, in a build with --config=cuda:
  bazel test --config=opt --config=cuda --test_tag_filters=gpu //tests/process:gpu_test
"""

import os
import signal
import unittest

from tests import report
from tests.process import chains, cluster, store_cluster


class MixedCluster(cluster.Cluster):
    """Servers of the given memories, by rank."""

    def __init__(self, test, memories):
        self._memories = memories
        super().__init__(test, servers=len(memories))

    def server_arguments(self, rank):
        return [*super().server_arguments(rank), "--table-memory", self._memories[rank]]


@unittest.skipUnless(os.path.exists("/dev/nvidiactl"), "needs an NVIDIA GPU")
class GpuTest(store_cluster.StoreTest):
    def bits_after(self, memories, kill=None):
        """The table's after 40 updates; after 20 of them the server of rank `kill` dies and comes
        back."""
        running = MixedCluster(self, memories)
        self.push(running, "adam", 1, 20)
        chains.await_whole(running)
        if kill is not None:
            os.kill(running.servers[kill].pid, signal.SIGKILL)
            running.servers[kill].exit_code()
            self.push(running, "adam", 21, 30)
            running.restart_the_fallen()
            chains.await_whole(running)
            self.push(running, "adam", 31, 40)
        else:
            self.push(running, "adam", 21, 40)
        bits = self.table_bits(running, "adam")
        for server in running.servers:
            server.kill()
        running.scheduler.kill()
        return bits

    def test_gpu_and_cpu_hold_the_same_bits_and_take_over_from_each_other(self):
        expected = self.bits_after(["host", "host"])
        self.assertEqual(expected, self.bits_after(["cuda", "cuda"]))
        self.assertEqual(expected, self.bits_after(["cuda", "host"], kill=0))
        self.assertEqual(expected, self.bits_after(["cuda", "host"], kill=1))


if __name__ == "__main__":
    report.main()
