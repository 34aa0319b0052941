# SPDX-License-Identifier: Apache-2.0
"""A sparse table of very many rows on one machine: made, trained, saved and restored.

COVEY_ROWS sets how many: 100 million by default, which takes 12 GiB of memory and 9 GB of disk.
"""

import array
import os
import time

import covey
from tests import report
from tests.process import cluster, store_cluster

_ROWS = int(os.environ.get("COVEY_ROWS", 100_000_000))
_WIDTH = 16
_BATCH = 500_000
_TRAINED = 20_000_000
_SAMPLE = array.array("Q", range(7, _ROWS, max(_ROWS // 400_000, 1)))
# Of a row with row-wise Adagrad: 64 bytes of values and 4 of state, and the index.
_BYTES_PER_ROW_MAX = 110
_PATIENCE_SECONDS = 900


class ManyRows(store_cluster.StoreTest):

    def setUp(self):
        super().setUp()
        self._gradient = memoryview(
            array.array("f", [0.25, -0.5, 1.0, 2.0] * (_BATCH * _WIDTH // 4)))
        self._pushes = []

    def connect(self, running):
        client = covey.connect(running.address, job=cluster.JOB, timeout=120)
        self.addCleanup(client.close)
        return client

    def covey(self, *words, code=0):
        run = self.run_to_end(f"covey {words[0]}", [cluster.COVEY, *words], seconds=_PATIENCE_SECONDS)
        self.assertEqual(code, run.code, run)
        return run

    @staticmethod
    def report(what, begun, rows, running):
        seconds = time.monotonic() - begun
        resident, highest = (
            running.servers[0].memory_kib(field) / 2**20 for field in ("VmRSS", "VmHWM"))
        print(f"{what}: {seconds:.1f} s, {rows / seconds / 1e6:.2f} M rows/s; "
              f"server {resident:.2f} GiB, at most {highest:.2f}", flush=True)

    def push(self, table, keys):
        """One batch, which is sorted while the one before is under way."""
        batch = table.batch(keys)
        self.drain()
        self._pushes.append(table.push(batch, self._gradient[:len(keys) * _WIDTH]))

    def drain(self):
        for push in self._pushes:
            push.wait()
        self._pushes.clear()

    def sample(self, client):
        out = array.array("f", bytes(4 * _WIDTH * len(_SAMPLE)))
        return bytes(client.find_sparse_table("many").pull(_SAMPLE, out).wait().values)

    def test_they_are_made_trained_saved_and_restored(self):
        running = store_cluster.StoreCluster(self)
        client = self.connect(running)
        table = client.create_sparse_table(covey.SparseTableSpec(
            "many", _WIDTH, covey.rowwise_adagrad(0.1), "async", initializer=covey.uniform(-1, 1)))

        begun = time.monotonic()
        for first in range(0, _ROWS, _BATCH):
            self.push(table, array.array("Q", range(first, min(first + _BATCH, _ROWS))))
        self.drain()
        self.report("made", begun, _ROWS, running)
        resident = running.servers[0].memory_kib("VmRSS") * 1024
        self.assertLess(resident, _BYTES_PER_ROW_MAX * _ROWS + 2**28)

        begun = time.monotonic()
        stride = max(_ROWS // _BATCH, 1)
        for first in range(_TRAINED // _BATCH):
            self.push(table, array.array("Q", range(first, _ROWS, stride)[:_BATCH]))
        self.drain()
        self.report("trained", begun, _TRAINED, running)

        then = self.sample(client)
        begun = time.monotonic()
        name = self.snapshot(running)
        self.report("saved", begun, _ROWS, running)
        self.push(table, _SAMPLE)
        self.drain()
        self.assertNotEqual(then, self.sample(client))
        client.close()
        for child in (*running.servers, running.scheduler):
            child.kill()

        running = store_cluster.StoreCluster(self)
        begun = time.monotonic()
        self.restore(running, name, "--timeout", f"{_PATIENCE_SECONDS}s")
        self.report("restored", begun, _ROWS, running)
        client = self.connect(running)
        self.assertEqual(then, self.sample(client))
        client.close()


if __name__ == "__main__":
    report.main()
