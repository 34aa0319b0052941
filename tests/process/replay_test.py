# SPDX-License-Identifier: Apache-2.0
"""Asynchronous runs that are recorded, and gone through again by `covey replay`."""

import json
import math
import os

from tests import report
from tests.process import cluster
from tests.process import npy_file
from tests.process import recording_file
from tests.process import safetensors_file

_GROUPS, _STEPS, _TENSORS = 8, 40, 4


class ReplayTest(cluster.ProcessTest):

    def setUp(self):
        super().setUp()
        self.recording = os.path.join(self.folder, "recording")
        self.model = os.path.join(self.folder, "model.safetensors")

    def record(self, *options, groups=_GROUPS, steps=_STEPS, kib=4):
        return self.result_of(
            groups, 1,
            [cluster.SYNTHETIC, "--contract", "async", "--tensors", _TENSORS, "--tensor-kib", kib,
             "--steps", steps, "--group-batch", 8, "--step-noise", 0.5, "--spread", 1],
            ["--servers", 2, "--server-loops", 1, "--record", self.recording, *options])

    def replay(self, code, *options):
        run = self.run_to_end("covey replay", [cluster.COVEY, "replay", self.recording, *options])
        self.assertEqual(code, run.code, run)
        return run

    def replayed(self, *options):
        return json.loads("".join(self.replay(0, *options, "-o", "json").lines("stdout")))

    def refusal(self):
        return self.replay(1).lines("stderr")[-1]

    def files(self):
        return [os.path.join(self.recording, name) for name in sorted(os.listdir(self.recording))]

    def tables_as_exported(self, *options):
        """Replays the recording, compares the values with those that the run exported, which the
        servers sent, and returns what the replay says of each table."""
        values = os.path.join(self.folder, "values")
        replayed = self.replayed("--export", values, *options)
        self.assertEqual([], replayed["notes"])
        tables = {table.pop("name"): table for table in replayed["tables"]}
        model, _ = safetensors_file.read(self.model)
        self.assertEqual(set(tables), set(model))
        for name, (_, shape, elements) in model.items():
            path = os.path.join(values, name.replace("/", "%2F") + ".npy")
            self.assertEqual(("<f4", tuple(shape), elements), npy_file.read(path), name)
        return tables

    def test_a_run_is_replayed_bit_for_bit(self):
        self.record("--export", self.model)
        tables = self.tables_as_exported()
        pushes = _GROUPS * _STEPS
        for tensor in range(_TENSORS):
            self.assertEqual({"shards": 1, "records": pushes, "pushes": pushes, "digests": 5,
                              "unchecked": 0}, tables[f"synthetic/{tensor}"])
        order = self.replay(0, "--order").lines("stdout")
        self.assertEqual(sum(table["records"] for table in tables.values()), len(order))
        # Groups overtook each other; else the order would prove little.
        first = [line.split()[3] for line in order if line.startswith("synthetic/0/")]
        steps = [int(push.split(":")[1]) for push in first]
        self.assertNotEqual(sorted(steps), steps)

    def test_a_run_that_continued_a_snapshot_is_replayed_from_it(self):
        store = os.path.join(self.folder, "store")
        self.record("--store", store, groups=2)
        for path in self.files():
            os.remove(path)
        # The groups count their steps on.
        self.record("--store", store, "--resume", "latest", "--export", self.model, groups=2,
                    steps=2 * _STEPS)
        self.assertRegex(self.refusal(), r"began from snapshot-\d+-e\d+; pass the folder of "
                                         r"snapshots with --store DIR")
        tables = self.tables_as_exported("--store", store)
        for tensor in range(_TENSORS):
            table = tables[f"synthetic/{tensor}"]
            self.assertEqual(2 * _STEPS, table["pushes"])
            self.assertGreater(table["digests"], 0)

    def swap(self, path):
        """Swaps two neighboring records of a shard with pushes of different groups; returns the
        index of the first."""
        header, blocks = recording_file.read(path)
        indexes, last = {}, {}
        for block in blocks:
            for entry in block:
                if not entry.is_record:
                    continue
                index = indexes[entry.stream] = indexes.get(entry.stream, 0) + 1
                before = last.get(entry.stream)
                if index > 80 and before.producers != entry.producers:
                    for field in ("encoded", "payload"):
                        ours, theirs = getattr(entry, field), getattr(before, field)
                        setattr(entry, field, theirs)
                        setattr(before, field, ours)
                    recording_file.write(path, header, blocks)
                    return index - 1
                last[entry.stream] = entry
        return None

    def test_another_order_is_named(self):
        self.record(groups=2, steps=100)
        index = next(filter(None, map(self.swap, self.files())))
        self.assertIn(index, range(80, 128))
        refusal = self.refusal()
        self.assertRegex(refusal, r"table 'synthetic/\d' shard 0: the first difference is among "
                                  r"records 65 to 128, which hold pushes of group 1 \(\d+ to \d+\), "
                                  r"group 2 \(\d+ to \d+\)$")

    def flip(self, path, offset):
        with open(path, "r+b") as file:
            file.seek(offset)
            byte = file.read(1)[0]
            file.seek(offset)
            file.write(bytes([byte ^ 1]))

    def test_damage_is_named_with_file_and_offset(self):
        self.record(groups=2)
        path = self.files()[0]
        _, blocks = recording_file.read(path)
        name = os.path.basename(path)
        gradient = next(entry for entry in blocks[0] if entry.is_record and entry.payload)
        for place, offset in ((0, 0), (45, 40), (60, 40),
                              (gradient.payload_offset + 7, gradient.payload_offset)):
            self.flip(path, place)
            self.assertIn(f"{name}, offset {offset}: ", self.refusal())
            self.flip(path, place)
        # A server that was killed leaves a torn block.
        os.truncate(path, os.path.getsize(path) - 1)
        notes = self.replayed()["notes"]
        self.assertEqual(1, len(notes))
        self.assertRegex(notes[0], rf"{name} ends after block \d+, at offset \d+, with a torn block")

    def test_an_order_without_gradients_is_small(self):
        self.record("--record-gradients=false")
        pushes = _GROUPS * _STEPS * _TENSORS
        order = self.replay(0, "--order").lines("stdout")
        self.assertGreater(len(order), pushes)
        size = sum(os.path.getsize(path) for path in self.files())
        # With headers, tables and digests of a short run.
        self.assertLess(size / len(order), 20)
        self.assertIn("the gradients were not recorded", self.refusal())

    def test_the_heads_of_a_shard_continue_each_other(self):
        # Gradients of this size are written at once.
        self.record("--kill", "server-1@300ms", groups=4, steps=1000, kib=64)
        replayed = self.replayed()
        self.assertGreater(sum(table["digests"] for table in replayed["tables"]), 0)
        # What was on its way to the disk may be missing, and with it what follows for these shards.
        for note in replayed["notes"]:
            self.assertRegex(note, "the server was killed|were not recorded")
        self.assertNotEqual([], replayed["notes"])

    def test_what_if_measures_the_distance(self):
        self.record(groups=2)
        values = os.path.join(self.folder, "values")
        adam = self.replayed("--with-optimizer", "adam:lr=0.01", "--export", values)
        self.assertIn("workers would have computed others", adam["caveat"])
        trained = [table for table in adam["tables"] if table["name"] != "synthetic/figures"]
        self.assertEqual(_TENSORS, len(trained))
        for table in trained:
            self.assertGreater(table["distance"], 0)
            _, _, elements = npy_file.read(
                os.path.join(values, table["name"].replace("/", "%2F") + ".npy"))
            self.assertAlmostEqual(table["norm"], math.hypot(*elements), 3)
        buffered = self.replayed("--with-contract", "buffered:2")
        self.assertIn("workers would have waited elsewhere", buffered["caveat"])
        self.assertEqual({_STEPS}, {table["updates"] for table in buffered["tables"]
                                    if table["name"] != "synthetic/figures"})
        # The same contract again: the same bits.
        unchanged = self.replayed("--with-contract", "async")
        self.assertEqual({0}, {table["distance"] for table in unchanged["tables"]})
        self.assertIn("not replayed under bsp",
                      self.replay(1, "--with-contract", "bsp").lines("stderr")[-1])
        self.assertIn("is no optimizer",
                      self.replay(2, "--with-optimizer", "adamm").lines("stderr")[-1])

    def test_wrong_usage(self):
        self.record(groups=1, steps=2)
        again = self.start_run(1, 1, [cluster.SYNTHETIC], ["--record", self.recording])
        self.assertEqual(2, again.exit_code(60), again)
        self.assertIn("the folder is not empty", again.lines("stderr")[-1])
        nowhere = self.run_to_end("covey replay", [cluster.COVEY, "replay", self.folder])
        self.assertEqual(1, nowhere.code)
        self.assertIn("holds no recording", nowhere.lines("stderr")[-1])


if __name__ == "__main__":
    report.main()
