# SPDX-License-Identifier: Apache-2.0
"""`covey export-rows`, from a running cluster and from a snapshot, read back as NumPy would."""

import json
import os
import zlib

from tests import report
from tests.process import cluster, npy_file, program, store_cluster

_ROWS = program.built("tests/process/rows_client")
_ROWS_MAX = 100_000


class ExportRowsTest(store_cluster.StoreTest):

    def push_rows(self, running, first, last, table="items", rows_max=_ROWS_MAX):
        self.assertEqual(0, self.run_to_end(
            "rows_client", [_ROWS, running.address, cluster.JOB, table, rows_max, first, last]).code)

    def run_export(self, out, *words, table="items"):
        return self.run_to_end("covey export-rows", [
            cluster.COVEY, "export-rows", table, "--job", cluster.JOB,
            "--out", os.path.join(self.folder, out), *words])

    def export(self, out, *words):
        """The manifest, the rows by key, and the keys that were removed."""
        run = self.run_export(out, "-o", "json", *words)
        self.assertEqual(0, run.code, run)
        folder = os.path.join(self.folder, out)
        with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as file:
            manifest = json.load(file)
        self.assertEqual(manifest, json.loads("\n".join(run.lines("stdout"))))
        for listed in manifest["files"]:
            with open(os.path.join(folder, listed["name"]), "rb") as file:
                content = file.read()
            self.assertEqual((listed["bytes"], listed["crc32"]),
                             (len(content), f"{zlib.crc32(content):08x}"))
        kind, (count,), keys = npy_file.read(os.path.join(folder, "keys.npy"))
        self.assertEqual(("<u8", sorted(set(keys))), (kind, keys))
        kind, shape, values = npy_file.read(os.path.join(folder, "values.npy"))
        self.assertEqual(("<f4", (count, 2), manifest["rows"]), (kind, shape, count))
        rows = {key: tuple(values[2 * i:2 * i + 2]) for i, key in enumerate(keys)}
        removed = []
        if manifest["holds"] == "changes":
            removed = npy_file.read(os.path.join(folder, "removed.npy"))[2]
            self.assertEqual(sorted(set(removed)), removed)
        self.assertEqual(len(removed), manifest["removed"])
        return manifest, rows, removed

    def refused(self, code, message, out, *words, **more):
        before = sorted(os.listdir(self.folder))
        run = self.run_export(out, *words, **more)
        self.assertEqual(code, run.code, run)
        self.assertIn(message, run.lines("stderr")[-1])
        self.assertEqual(before, sorted(os.listdir(self.folder)))

    def test_follows_a_cluster_from_a_snapshot_on(self):
        running = store_cluster.StoreCluster(self, servers=2)
        live = ["--scheduler", running.address]
        self.push_rows(running, 1, 50_000)
        name = self.snapshot(running)
        stored = ["--snapshot", "latest", "--store", self.store]
        self.push_rows(running, 40_001, 60_000)

        manifest, rows, _ = self.export("stored", *stored)
        self.assertEqual((name, "items", 2, "all"),
                         tuple(manifest[key] for key in ("snapshot", "table", "width", "holds")))
        self.assertEqual({(float(i), 1.0) for i in range(1, 50_001)}, set(rows.values()))
        self.assertEqual(2, manifest["definition"]["sparse"]["width"])

        # What has changed since the snapshot; and a full copy.
        manifest, changed, removed = self.export("changes", "--changed-since",
                                                 os.path.join(self.folder, "stored"), *live)
        self.assertEqual((20_000, []), (len(changed), removed))
        self.assertEqual({1.0, 2.0}, {count for _, count in changed.values()})
        rows.update(changed)
        full = self.export("full", *live)
        self.assertIsNone(full[0]["snapshot"])
        self.assertEqual(full[1], rows)
        self.assertEqual(0, self.export("none", "--changed-since",
                                        os.path.join(self.folder, "full", "manifest.json"),
                                        *live)[0]["rows"])

        # Rows go; what is left is what a full copy has.
        self.push_rows(running, 60_001, 105_000)
        _, changed, removed = self.export("evicted", "--changed-since",
                                          os.path.join(self.folder, "changes"), *live)
        self.assertGreater(len(removed), 1_000)
        self.assertFalse(set(removed) & set(changed))
        for key in removed:
            rows.pop(key, None)
        rows.update(changed)
        self.assertEqual(self.export("after", *live)[1], rows)

        # More rows go than servers remember.
        self.push_rows(running, 200_001, 400_000)
        self.refused(1, "read all rows again", "late", "--changed-since",
                     os.path.join(self.folder, "evicted"), *live)
        self.refused(1, "exists already", "full", *live)
        self.refused(1, "no table 'none'", "x", *live, table="none")
        self.refused(1, "no table 'none'", "x", *stored, table="none")
        running.count()
        self.refused(1, "is dense", "x", *live, table="counters")

    def test_says_what_is_wrong(self):
        live = ["--scheduler", "127.0.0.1:1"]
        self.refused(3, "127.0.0.1:1", "x", *live)
        self.refused(2, "pass --store DIR", "x", "--snapshot", "latest")
        self.refused(2, "leave out --snapshot", "x", "--snapshot", "latest", "--store", self.store,
                     "--changed-since", "y")
        self.refused(1, "is no manifest", "x", *live, "--changed-since", __file__)
        self.refused(2, "no scheduler given", "x")


if __name__ == "__main__":
    report.main()
