# SPDX-License-Identifier: Apache-2.0
"""`covey snapshot` on a folder with the snapshots of an earlier version, without a cluster."""

import json
import os
import pathlib
import struct

from tests import report
from tests.process import cluster
from tests.process import safetensors_file

_GOLDEN = pathlib.Path(__file__).parents[2] / "common/snapshot/testdata"
_OLDER, _NEWER = "snapshot-000003-e7", "snapshot-000005-e9"


class CliSnapshotTest(cluster.ProcessTest):
    golden = "format_1.txt"

    def setUp(self):
        super().setUp()
        self.store = os.path.join(self.folder, "store")
        for name in (_OLDER, _NEWER):
            os.makedirs(os.path.join(self.store, name))
        path = None
        for line in (_GOLDEN / self.golden).read_text(encoding="ascii").splitlines():
            if line.startswith("file "):
                path = os.path.join(self.store, line.removeprefix("file "))
            elif not line.startswith("#"):
                with open(path, "ab") as file:
                    file.write(bytes.fromhex(line))

    def covey(self, code, *words):
        run = self.run_to_end("covey snapshot",
                              [cluster.COVEY, "snapshot", "--store", self.store, *words])
        self.assertEqual(code, run.code, run)
        return run

    def json(self, *words):
        return json.loads("".join(self.covey(0, *words, "-o", "json").lines("stdout")))

    def refused(self, code, message, *words):
        self.assertIn(message, self.covey(code, *words).lines("stderr")[-1])

    def flip(self, path, offset):
        with open(os.path.join(self.store, path), "r+b") as file:
            file.seek(offset)
            byte = file.read(1)[0]
            file.seek(offset)
            file.write(bytes([byte ^ 1]))

    def test_lists_and_shows(self):
        lines = self.covey(0, "list").lines("stdout")
        self.assertEqual(["NAME", _OLDER, _NEWER], [line.split()[0] for line in lines])
        self.assertTrue(all(line.endswith("complete") for line in lines[1:]), lines)
        os.mkdir(os.path.join(self.store, "snapshot-000006-e9"))
        listed = self.json("list")
        self.assertEqual([True, True, False], [snapshot["complete"] for snapshot in listed])
        self.assertIn("MANIFEST is missing", listed[2]["reason"])
        shown = self.json("show")
        self.assertEqual(_NEWER, shown["name"])
        self.assertEqual(["weights", "bias"], [table["name"] for table in shown["tables"]])
        self.assertEqual([{"group": 1, "last_step": 500}], shown["groups"])
        self.assertEqual(_OLDER, self.json("show", _OLDER)["name"])

    def test_verifies(self):
        self.assertIn(f"{_NEWER} is intact", str(self.covey(0, "verify")))
        self.assertEqual(self.json("list")[0]["bytes"], self.json("verify", _OLDER)["bytes"])
        part = f"{_NEWER}/part-3-1-000.cvp"
        self.flip(part, 200)
        self.covey(0, "list")
        self.refused(1, f"{part}, offset 192: ", "verify")
        self.flip(part, 200)
        self.covey(0, "verify")
        os.truncate(os.path.join(self.store, part), 64)
        self.refused(1, f"{part} has 64 bytes instead of", "verify", _NEWER)
        # The newest complete one is now the older.
        self.assertEqual(_OLDER, self.json("verify")["name"])

    def test_exports(self):
        def value(element, shard=0):  # as SmallSnapshot makes them
            return struct.unpack("<f", bytes([0, 0, 16 * (element + shard) % 256, 0x40]))[0]

        out = os.path.join(self.folder, "model.safetensors")
        exported = self.json("export", "--out", out)
        self.assertEqual([_NEWER, os.path.getsize(out)], [exported["name"], exported["bytes"]])
        tensors, metadata = safetensors_file.read(out)
        self.assertEqual(
            {"weights": ("F32", [5, 4], [value(i) for i in range(16)] + [value(i, 1) for i in range(4)]),
             "bias": ("F32", [3], [value(i) for i in range(3)])}, tensors)
        self.assertEqual(_NEWER, metadata["covey_snapshot"])
        self.flip(f"{_OLDER}/part-2-1-000.cvp", 140)
        self.refused(1, "part-2-1-000.cvp, offset 64: ", "export", _OLDER, "--out", out)
        self.assertEqual(_NEWER, safetensors_file.read(out)[1]["covey_snapshot"])
        self.assertEqual(["model.safetensors", "store"], sorted(os.listdir(self.folder)))

    def test_deletes(self):
        self.refused(1, "is the newest complete snapshot; --force deletes it", "delete", _NEWER)
        os.mkdir(os.path.join(self.store, "snapshot-000006-e9"))
        self.refused(1, "a cluster may be writing it", "delete", "snapshot-000006-e9")
        self.covey(0, "delete", "snapshot-000006-e9", "--force")
        self.covey(0, "delete", _OLDER)
        self.assertEqual([_NEWER], os.listdir(self.store))
        self.refused(1, f"there is no snapshot {_OLDER}", "delete", _OLDER)
        self.assertEqual({"deleted": _NEWER, "kept_files": [], "needed_by": []},
                         self.json("delete", _NEWER, "--force"))
        self.assertEqual([], os.listdir(self.store))
        self.assertIn("no snapshots", str(self.covey(0, "list")))
        self.refused(1, "there is no complete snapshot", "verify")

    def test_wrong_usage(self):
        self.refused(2, "write create, restore NAME, list, show [NAME]")
        self.refused(2, "'remove' with 1 words", "remove", _NEWER)
        self.refused(2, "'delete' with 0 words", "delete")
        self.refused(2, "no file given; pass --out", "export")
        self.refused(2, "only show takes --files", "list", "--files")
        self.refused(1, "'../store' is no snapshot", "delete", "../store")
        self.store += "/none"
        self.refused(1, "cannot open the store's folder", "list")
        run = self.run_to_end("covey snapshot", [cluster.COVEY, "snapshot", "list"])
        self.assertEqual(2, run.code, run)
        self.assertIn("pass --store DIR or set COVEY_STORE", run.lines("stderr")[-1])


class CliReferenceTest(CliSnapshotTest):
    """The newer snapshot refers to a file of the older one."""
    golden = "format_2.txt"
    used = f"{_OLDER}/part-3-1-000.cvp"

    def test_deletes(self):
        self.assertEqual({"deleted": _OLDER, "kept_files": ["part-3-1-000.cvp"], "needed_by": [_NEWER]},
                         self.json("delete", _OLDER))
        self.assertEqual(["part-3-1-000.cvp"], os.listdir(os.path.join(self.store, _OLDER)))
        self.refused(1, f"what remains of it is part of {_NEWER}", "delete", _OLDER)
        self.assertEqual([_NEWER], [found["name"] for found in self.json("list")])
        self.covey(0, "verify")
        # What was left for it alone goes with it.
        self.covey(0, "delete", _NEWER, "--force")
        self.assertEqual([], os.listdir(self.store))

    def test_keeps_what_an_unreadable_one_may_need(self):
        self.flip(f"{_NEWER}/MANIFEST", 40)
        os.makedirs(os.path.join(self.store, "snapshot-000007-e9"))
        self.refused(1, f"{_OLDER} is the newest complete snapshot", "delete", _OLDER)
        self.covey(0, "delete", _OLDER, "--force")

    def test_verifies(self):
        shown = self.json("show")
        self.assertEqual([2, 1], [shown["files"], shown["reused_files"]])
        verified = self.json("verify")
        self.assertEqual(shown["reused_bytes"], verified["reused_bytes"])
        self.assertEqual(3, verified["files"])
        self.assertEqual([f"{_NEWER}/part-2-1-000.cvp", self.used, f"{_NEWER}/MANIFEST"],
                         self.covey(0, "show", "--files").lines("stdout"))
        self.flip(self.used, 200)
        self.refused(1, f"{self.used}, offset 192: ", "verify")
        os.remove(os.path.join(self.store, self.used))
        self.refused(1, f"{self.used} is missing", "verify", _NEWER)
        self.assertEqual([False, False], [found["complete"] for found in self.json("list")])


if __name__ == "__main__":
    report.main()
