# SPDX-License-Identifier: Apache-2.0
"""Rows of sparse tables in snapshots: a job that restores them goes on with the same bits."""

import array
import json
import random

import covey
from tests import report
from tests.process import cluster, store_cluster

_WIDTH = 3
_KEYS = array.array("Q", [0, 2**63, 2**64 - 1, *range(1, 400)])


class RowSnapshotsTest(store_cluster.StoreTest):
    def client_of(self, running):
        client = covey.connect(running.address, job=cluster.JOB, timeout=30)
        self.addCleanup(client.close)
        return client

    @staticmethod
    def push(table, seed):
        """Some of the keys: half of them in two pushes, and others in one."""
        draw = random.Random(seed)
        keys = array.array("Q", draw.sample(_KEYS, len(_KEYS) // 2))
        table.push(keys, array.array("f", [draw.uniform(-1, 1) for _ in range(len(keys) * _WIDTH)]),
                   samples=4).wait()

    @staticmethod
    def rows(table):
        return table.pull(_KEYS, array.array("f", bytes(4 * _WIDTH * len(_KEYS)))).wait().values

    def await_count(self, running, name, field):
        """Returns when the servers have reported a number above 0 in this field of a table's rows."""
        def has_come(_):
            printed = self.covey("tables", "--scheduler", running.address, "-o", "json")
            tables = json.loads("".join(printed.lines("stdout")))
            ids = {table["spec"]["name"]: table["id"] for table in tables["tables"]}
            return any(int(rows[field]) > 0 for rows in tables["rows"] if rows["table"] == ids[name])

        running.await_status(has_come, f"{field} of {name}")

    def test_a_job_goes_on_with_the_same_bits(self):
        running = store_cluster.StoreCluster(self, servers=2)
        client = self.client_of(running)
        for name, more in (("plain", {}),
                           ("bfloats", {"dtype": "bfloat16"}),
                           ("halves", {"dtype": "float16"}),
                           ("admitted", {"admit_after": 2}),
                           ("evicted", {"rows_max": 150, "when_full": "evict"})):
            table = client.create_sparse_table(covey.SparseTableSpec(
                name, _WIDTH, covey.adagrad(0.1), "async", initializer=covey.uniform(-1, 1), **more))
            for seed in range(2):
                self.push(table, seed)
        self.snapshot(running)
        names = ("plain", "bfloats", "halves", "admitted", "evicted")
        then = [self.rows(client.find_sparse_table(name)) for name in names]
        for name in names:
            self.push(client.find_sparse_table(name), 2)
        later = [self.rows(client.find_sparse_table(name)) for name in names]
        self.assertNotIn(True, [before == after for before, after in zip(then, later)])
        client.close()
        running.stop()
        running = store_cluster.StoreCluster(self, servers=1)
        self.restore(running, "1")  # stopping made another one
        client = self.client_of(running)
        tables = [client.find_sparse_table(name) for name in names]
        self.assertEqual(then, [self.rows(table) for table in tables])
        # Of before the snapshot: nothing has been pushed here.
        self.await_count(running, "admitted", "pending")
        # The state of the optimizer came along, and the updates that waiting keys have had.
        for table in tables[:4]:
            self.push(table, 2)
        self.assertEqual(later[:4], [self.rows(table) for table in tables[:4]])


if __name__ == "__main__":
    report.main()
