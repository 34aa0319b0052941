# SPDX-License-Identifier: Apache-2.0
"""`covey run --events`: the curves of a run as event files for TensorBoard."""

import glob
import json
import os
import shutil
import struct
import time

from tests import report
from tests.process import cluster
from tests.process import event_files

# The curves whose points the JSON of a run has, too, and their names there.
_CURVES = {"loss": "loss", "samples": "samples", "samples_per_second": "samples_per_second",
           "staleness": "staleness", "step": "step"}


def _as_float32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


class CliEventsTest(cluster.ProcessTest):

    def setUp(self):
        super().setUp()
        self.events = os.path.join(self.folder, "new", "events")
        self.json = os.path.join(self.folder, "run.json")

    def train(self, steps, events=None):
        command = [cluster.SYNTHETIC, "--milliseconds-per-sample", 10, "--group-batch", 4,
                   "--tensors", 2, "--tensor-kib", 16, "--steps", steps]
        return self.start_run(2, 1, command, ["--events", events or self.events, "--json", self.json])

    def files(self):
        """By the names of their folders."""
        found = glob.glob(os.path.join(self.events, "*", "*tfevents*"))
        by_folder = {os.path.basename(os.path.dirname(path)): path for path in found}
        self.assertEqual(len(found), len(by_folder), "one file per group")
        return by_folder

    def test_the_curves_are_those_of_the_history(self):
        begun = time.time()
        run = self.train(200)
        run.await_line(r"group 1 step \d+.*group 2 step \d+")
        self.assertEqual(2, len(self.files()))
        for path in self.files().values():
            self.assertTrue(event_files.read(path), "points are there while the run goes on")
        self.assertEqual(0, run.exit_code(240), run)
        ended = time.time()
        with open(self.json, encoding="utf-8") as file:
            history = json.load(file)["history"]
        self.assertEqual({f"group-{group['group']}" for group in history}, set(self.files()))
        for group in history:
            written = event_files.read(self.files()[f"group-{group['group']}"])
            self.assertEqual([point["step"] for point in group["points"]],
                             [step for _, step, _ in written])
            for point, (wall, _, scalars) in zip(group["points"], written):
                self.assertLess(begun, wall)
                self.assertLess(wall, ended)
                for tag, name in _CURVES.items():
                    self.assertEqual(_as_float32(point[name]), scalars[tag], tag)
                for tag in ["seconds_per_step/compute", "seconds_per_step/wait", "steps_aside"]:
                    self.assertIn(tag, scalars)

    def test_a_run_goes_on_without_its_files(self):
        run = self.train(200)
        run.await_line(r"group 1 step \d+.*group 2 step \d+")
        shutil.rmtree(self.events)
        run.await_line("--events: .*no more curves are written")
        self.assertEqual(0, run.exit_code(240), run)
        self.assertEqual(1, str(run).count("--events: "), run)

    def test_a_folder_that_cannot_be_made_is_said_at_once(self):
        run = self.train(1, events=os.path.join(cluster.COVEY, "events"))
        self.assertEqual(2, run.exit_code(), run)
        self.assertIn(cluster.COVEY, run.lines("stderr")[0])


if __name__ == "__main__":
    report.main()
