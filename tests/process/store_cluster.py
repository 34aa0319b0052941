# SPDX-License-Identifier: Apache-2.0
"""A cluster with a store of snapshots, and tables that numbered pushes change."""

import json
import os

from tests.process import cluster, program

_ADAM = program.built("tests/process/adam_client")


class StoreCluster(cluster.Cluster):
    """Scheduler and servers have a store; `more` are further options of the scheduler."""

    def __init__(self, test, more=(), **options):
        self._store = test.store
        super().__init__(test, scheduler_options=["--store", test.store, *more], **options)

    def server_arguments(self, rank):
        return [*super().server_arguments(rank), "--store", self._store]


class StoreTest(cluster.ProcessTest):

    def setUp(self):
        super().setUp()
        self.store = os.path.join(self.folder, "store")

    def covey(self, *words, code=0):
        run = self.run_to_end(f"covey {words[0]}", [cluster.COVEY, *words])
        self.assertEqual(code, run.code, run)
        return run

    def push(self, running, table, first, last):
        """These numbered pushes, into a table that is there or new."""
        self.assertEqual(0, self.run_to_end(
            "adam_client", [_ADAM, running.address, cluster.JOB, table, first, last]).code)

    def snapshot(self, running):
        created = self.covey("snapshot", "create", "--scheduler", running.address, "-o", "json")
        return json.loads("".join(created.lines("stdout")))["name"]

    def restore(self, running, *words, code=0):
        return self.covey("snapshot", "restore", *words, "--scheduler", running.address, code=code)

    def tables(self, running):
        return {table["spec"]["name"]: table for table in running.status()["view"].get("tables", [])}

    def bits(self, *words):
        """The file that an export of one table writes, after its head."""
        out = os.path.join(self.folder, "values.npy")
        self.covey("export", *words, "--out", out)
        with open(out, "rb") as file:
            return file.read()

    def table_bits(self, running, table):
        return self.bits("--scheduler", running.address, "--job", cluster.JOB, "--tables", table)
