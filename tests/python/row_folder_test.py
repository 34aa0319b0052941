# SPDX-License-Identifier: Apache-2.0
"""Rows of sparse tables in a mapped file: the same bits as in memory, in the page cache."""

import array
import os
import random

import covey
from tests import report
from tests.process import chains, cluster

_WIDTH = 16
_KEYS = array.array("Q", range(200_000))
_BYTES = len(_KEYS) * _WIDTH * 4


class MixedCluster(cluster.Cluster):
    """The server of rank 0 has rows in a folder, the one of rank 1 in memory."""

    def __init__(self, test):
        self.folder = os.path.join(test.folder, "rows")
        os.mkdir(self.folder)
        super().__init__(test, servers=2)

    def server_arguments(self, rank):
        more = ["--row-folder", self.folder] if rank == 0 else []
        return [*super().server_arguments(rank), *more]


class RowFolderTest(cluster.ProcessTest):

    def rows(self, table):
        return table.pull(_KEYS, array.array("f", bytes(_BYTES))).wait().values

    def test_servers_with_and_without_a_folder_share_a_chain(self):
        running = MixedCluster(self)
        client = covey.connect(running.address, job=cluster.JOB, timeout=60)
        self.addCleanup(client.close)
        table = client.create_sparse_table(covey.SparseTableSpec(
            "rows", _WIDTH, covey.adagrad(0.1), "async", initializer=covey.uniform(-1, 1), replicas=2))
        in_file, in_memory = running.servers
        mapped, anonymous = in_file.memory_kib("RssFile"), in_memory.memory_kib("RssAnon")
        draw = random.Random(1)
        gradient = array.array("f", [draw.uniform(-1, 1) for _ in range(len(_KEYS) * _WIDTH)])
        for _ in range(3):
            table.push(_KEYS, gradient).wait()
        then = self.rows(table)
        # Values and Adagrad's sums.
        self.assertGreater(in_file.memory_kib("RssFile") - mapped, 2 * _BYTES >> 10)
        self.assertGreater(in_memory.memory_kib("RssAnon") - anonymous, 2 * _BYTES >> 10)
        self.assertLess(in_file.memory_kib("RssAnon"), in_memory.memory_kib("RssAnon") - (_BYTES >> 10))
        self.assertEqual([], os.listdir(running.folder))
        # Whichever headed the shards, the other has the same bits.
        for victim in running.servers:
            victim.kill()
            self.assertEqual(then, self.rows(table))
            chains.await_whole(running)

    def test_a_folder_that_does_not_serve_is_refused(self):
        running = cluster.Cluster(self)
        refused = self.run_to_end("server", [
            cluster.SERVER, "--scheduler", running.address, "--job", cluster.JOB, "--row-folder", "/nowhere"])
        self.assertNotEqual(0, refused.code)
        self.assertRegex(str(refused), "rows in /nowhere: make a file: No such file or directory; choose")


if __name__ == "__main__":
    report.main()
