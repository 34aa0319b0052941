# SPDX-License-Identifier: Apache-2.0
"""`covey snapshot restore`: tables of a snapshot in a running job."""

import json
import os

from tests import report
from tests.process import cluster, store_cluster


class RestoreTest(store_cluster.StoreTest):

    def test_a_table_goes_on_as_if_nothing_had_happened_since_the_snapshot(self):
        running = store_cluster.StoreCluster(self, servers=2)
        for table in ("weights", "undisturbed"):
            self.push(running, table, 1, 8)
        name = self.snapshot(running)
        then = self.table_bits(running, "weights")
        self.push(running, "weights", 9, 12)
        self.assertNotEqual(then, self.table_bits(running, "weights"))
        running.servers.append(None)
        running.start_server(2)
        running.await_status(lambda status: len(cluster.nodes(status, "SERVER")) == 3, "3 servers")
        restored = self.restore(running, "latest", "--table", "weights=copy")
        self.assertRegex(str(restored), rf"restored from {name} after \S+: copy")
        tables = self.tables(running)
        ranges = [[(shard["first_element"], shard["element_count"]) for shard in tables[table]["shards"]]
                  for table in ("weights", "copy")]
        self.assertGreater(len(ranges[0]), 1)
        self.assertEqual(ranges[0], ranges[1])
        self.assertEqual(then, self.table_bits(running, "copy"))
        # Slots, version and samples came along: the next update is that of a table which had no
        # other history.
        self.push(running, "undisturbed", 9, 9)
        self.push(running, "copy", 9, 9)
        self.assertNotEqual(then, self.table_bits(running, "copy"))
        self.assertEqual(self.table_bits(running, "undisturbed"), self.table_bits(running, "copy"))
        # A copy of the copy, from a snapshot that has it.
        self.restore(running, self.snapshot(running), "--table", "copy=again,weights=later")
        self.assertEqual(self.table_bits(running, "copy"), self.table_bits(running, "again"))
        self.assertEqual(self.table_bits(running, "weights"), self.table_bits(running, "later"))

    def test_all_tables_in_a_job_that_has_begun_anew(self):
        running = store_cluster.StoreCluster(self, servers=2)
        for table in ("a", "b"):
            self.push(running, table, 1, 3)
        self.snapshot(running)
        bits = [self.table_bits(running, table) for table in ("a", "b")]
        running.stop()
        running = store_cluster.StoreCluster(self, servers=1)
        restored = self.restore(running, "1", "-o", "json")
        self.assertEqual(["a", "b"], json.loads("".join(restored.lines("stdout")))["tables"])
        self.assertEqual(bits, [self.table_bits(running, table) for table in ("a", "b")])

    def test_what_cannot_be_made_leaves_nothing(self):
        running = store_cluster.StoreCluster(self, servers=2)
        for table in ("a", "b"):
            self.push(running, table, 1, 1)
        name = self.snapshot(running)

        def refused(message, *words, code=1):
            self.assertIn(message, self.restore(running, *words, code=code).lines("stderr")[-1])
            self.assertEqual({"a", "b"}, set(self.tables(running)))

        refused("the job has a table of this name; restore it under another one, with --table "
                "a=NEWNAME", "latest")
        refused("restore table 'b': ", "latest", "--table", "a=c", "--table", "b")
        refused("there is no complete snapshot of id 17", "17")
        refused("'newest' is no snapshot; write latest", "newest")
        refused(f"{name} has no table 'c'", "latest", "--table", "a=d,c")
        refused("write create, restore NAME", code=2)
        refused("--table a= is not of the form NAME or NAME=NEWNAME", "latest", "--table", "a=", code=2)
        # One damaged byte, in a shard of one of two tables.
        parts = [entry for entry in sorted(os.listdir(os.path.join(self.store, name)))
                 if entry != "MANIFEST"]
        path = os.path.join(self.store, name, parts[0])
        with open(path, "r+b") as file:
            file.seek(os.path.getsize(path) // 2)
            byte = file.read(1)[0]
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte ^ 1]))
        refused("is damaged", "latest", "--table", "a=c,b=d")
        running.await_status(
            lambda status: "not restored from" in json.dumps(status["events"]), "an event")

    def test_a_job_without_a_store_is_told(self):
        running = cluster.Cluster(self)
        run = self.restore(running, "latest", code=1)
        self.assertIn("this job has no store", run.lines("stderr")[-1])


if __name__ == "__main__":
    report.main()
