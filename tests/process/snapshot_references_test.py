# SPDX-License-Identifier: Apache-2.0
"""Snapshots that hold what has changed, and refer to earlier ones for the rest."""

import json
import os
import shutil

from tests import report
from tests.process import cluster, store_cluster

_TABLES = [f"table-{number}" for number in range(4)]
# Bytes of one of them: values and two slots of Adam.
_TABLE_BYTES = 3 * 4 * 1_000_003


class SnapshotReferencesTest(store_cluster.StoreTest):

    def start_job(self):
        """Two snapshots: of all tables, and after a change of the first one. Their names."""
        running = store_cluster.StoreCluster(self, servers=2)
        for table in _TABLES:
            self.push(running, table, 1, 2)
        whole = self.snapshot(running)
        self.push(running, _TABLES[0], 3, 3)
        return running, whole, self.snapshot(running)

    def stored(self, *words, code=0, store=None):
        return self.covey("snapshot", "--store", store or self.store, *words, code=code)

    def json(self, *words):
        return json.loads("".join(self.stored(*words, "-o", "json").lines("stdout")))

    def exported(self, name, store=None):
        out = os.path.join(self.folder, "model.safetensors")
        self.stored("export", name, "--out", out, store=store)
        with open(out, "rb") as file:
            return file.read().replace(name.encode(), b"NAME")

    def all_bits(self, running):
        return [self.table_bits(running, table) for table in _TABLES]

    def test_only_what_has_changed_is_written(self):
        running, whole, changed = self.start_job()
        shown = self.json("show", whole)
        self.assertLess(4 * _TABLE_BYTES, shown["bytes"])
        self.assertEqual(0, shown["reused_bytes"])
        shown = self.json("show", changed)
        self.assertTrue(_TABLE_BYTES < shown["bytes"] < 1.1 * _TABLE_BYTES, shown)
        self.assertTrue(3 * _TABLE_BYTES < shown["reused_bytes"] < 3.3 * _TABLE_BYTES, shown)
        self.assertGreater(shown["reused_files"], 0)
        running.await_status(
            lambda status: "in earlier snapshots" in json.dumps(status["events"]), "an event")
        # A table that is restored, and one that begins with its values, are read from there.
        then = self.all_bits(running)
        self.restore(running, "latest", "--table", f"{_TABLES[0]}=a,{_TABLES[1]}=b")
        self.assertEqual(then[:2], [self.table_bits(running, table) for table in "ab"])
        # All processes die; another job, with one server, goes on from it.
        for process in (running.scheduler, *running.servers):
            process.kill()
        running = store_cluster.StoreCluster(self, servers=1, more=["--resume", changed])
        self.assertEqual(then, self.all_bits(running))

    def test_it_is_copied_with_the_files_that_it_needs(self):
        _, whole, changed = self.start_job()
        files = self.stored("show", changed, "--files").lines("stdout")
        self.assertEqual(f"{changed}/MANIFEST", files[-1])
        self.assertTrue(any(file.startswith(f"{whole}/part-") for file in files), files)
        self.assertEqual(files, self.json("show", changed, "--files"))
        copy = os.path.join(self.folder, "copy")
        for file in files:
            os.makedirs(os.path.join(copy, os.path.dirname(file)), exist_ok=True)
            shutil.copy(os.path.join(self.store, file), os.path.join(copy, file))
        self.stored("verify", changed, store=copy)
        self.assertEqual(self.exported(changed), self.exported(changed, store=copy))
        listed = self.stored("list", store=copy).lines("stdout")
        self.assertEqual([changed], [line.split()[0] for line in listed[1:]])
        missing = next(file for file in files if file.startswith(whole))
        os.remove(os.path.join(copy, missing))
        refused = self.stored("verify", changed, store=copy, code=1).lines("stderr")[-1]
        self.assertIn(f"{missing} is missing: it was removed, or did not travel with {changed}", refused)

    def test_files_stay_as_long_as_a_snapshot_needs_them(self):
        running, whole, changed = self.start_job()
        bits = self.exported(changed)
        deleted = self.json("delete", whole)
        self.assertEqual([changed], deleted["needed_by"])
        self.assertEqual(deleted["kept_files"], sorted(os.listdir(os.path.join(self.store, whole))))
        self.assertEqual([changed], [found["name"] for found in self.json("list")])
        refused = self.stored("delete", whole, code=1).lines("stderr")[-1]
        self.assertIn(f"what remains of it is part of {changed}, and goes with that one", refused)
        self.stored("verify", changed)
        self.assertEqual(bits, self.exported(changed))
        self.find_damage(changed, f"{whole}/{deleted['kept_files'][0]}")
        # Nothing has changed since: the next snapshot refers to the same files.
        last = self.snapshot(running)
        self.stored("delete", changed)
        self.stored("verify", last)
        self.assertEqual(bits, self.exported(last))

    def find_damage(self, name, part):
        """One damaged byte is found where the snapshot uses the file, and named where it lies."""
        path = os.path.join(self.store, part)
        with open(path, "rb") as file:
            intact = file.read()
        found = 0
        for eighth in range(1, 8):
            damaged = bytearray(intact)
            damaged[len(intact) * eighth // 8] ^= 1
            with open(path, "wb") as file:
                file.write(damaged)
            run = self.run_to_end("covey snapshot", [
                cluster.COVEY, "snapshot", "--store", self.store, "verify", name])
            if run.code != 0:
                self.assertIn(f"{part}, offset ", run.lines("stderr")[-1])
                found += 1
        with open(path, "wb") as file:
            file.write(intact)
        self.assertGreater(found, 3)


if __name__ == "__main__":
    report.main()
