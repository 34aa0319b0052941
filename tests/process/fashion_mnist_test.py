# SPDX-License-Identifier: Apache-2.0
"""The main job, end to end and small: two groups learn Fashion-MNIST from one command."""

import json
import os

from tests import report
from tests.process import cluster

_ACCURACY_MIN = 0.8
_KEYS = {"test_accuracy", "train_seconds", "samples_per_second", "servers", "groups", "workers",
         "contract"}


class FashionMnistTest(cluster.ProcessTest):
    def run_job(self, contract, groups, workers, transport, *options, epochs=1):
        """Returns the result of a run, which must succeed."""
        report_file = os.path.join(self.folder, "report.html")
        course = os.path.join(self.folder, "course.json")
        run = self.run_to_end(
            "covey run",
            [cluster.COVEY, "run", "--servers", 2, "--groups", groups, "--workers", workers,
             "--transport", transport, "--report", report_file, "--json", course,
             "--scheduler-binary", cluster.SCHEDULER, "--server-binary", cluster.SERVER, *options, "--",
             cluster.FASHION_MNIST, "--epochs", epochs, "--hidden", 32, "--contract", contract],
            seconds=240)
        self.assertEqual(0, run.code, run)
        self.assertEqual({}, run.descendants())
        with open(report_file, encoding="utf-8") as file:
            self.page = file.read()
        self.assertIn("<svg", self.page)
        with open(course, encoding="utf-8") as file:
            history = json.load(file)["history"]
        # At the end members take steps without examples, which have no loss; a slow start may leave
        # a group no examples at all.
        losses = [point["loss"] for group in history for point in group["points"]
                  if point["samples"] > 0]
        self.assertGreater(min(losses), 0, losses)
        self.errors = "\n".join(run.lines("stderr"))
        sentences = [line for line in run.lines("stderr") + run.lines("stdout") if "a step takes" in line]
        self.assertEqual(1, len(sentences), "the launcher's line stands for those of the workers")
        self.assertRegex(sentences[0], r"^a step takes .*: computation \d+ %, input \d+ %, waiting for the group "
                                       r"\d+ %, waiting for servers \d+ %; bottleneck: \w+")
        result = json.loads(run.lines("stdout")[-1])
        print(result)
        self.assert_divided(result["step_times"])
        self.assertLessEqual(_KEYS, set(result))
        self.assertEqual((2, groups, contract),
                         (result["servers"], result["groups"], result["contract"]))
        self.assertGreater(result["test_accuracy"], _ACCURACY_MIN)
        self.assertEqual(epochs * 60_000, result["samples"])
        return result

    def assert_divided(self, times):
        """The parts of a step are there, and add up."""
        parts = [times[part + "_seconds"] for part in ("computation", "input", "group", "servers")]
        self.assertGreater(min(parts[:2]), 0, times)
        self.assertGreater(parts[2] + parts[3], 0, times)
        self.assertAlmostEqual(times["step_seconds"], sum(parts), places=7)

    def test_two_groups(self):
        self.run_job("buffered", groups=2, workers=2, transport="auto")

    def test_one_group_over_sockets_of_the_file_system(self):
        self.run_job("bsp", groups=1, workers=2, transport="ipc")

    def test_two_groups_that_take_steps_of_their_own_between_rounds(self):
        self.run_job("local:8", groups=2, workers=1, transport="tcp", epochs=2)

    def survive(self, kills, died, workers=2, epochs=4):
        """Checks the cost of such kills, in a run that succeeds and reports them."""
        result = self.run_job("buffered", 2, workers, "auto", "--kill", kills, epochs=epochs)
        self.assertIn(f"in all: {died} died", self.errors)
        self.assertIn("Losses and their consequences", self.page)
        losses = result["losses"]
        self.assertEqual(died, losses["died"])
        self.assertEqual(0, losses["shards_lost"])
        return losses

    def test_a_server_and_a_worker_are_killed_on_the_way(self):
        losses = self.survive("server-0@100ms,worker-1@200ms", 2)
        self.assertGreater(losses["failovers"], 0)
        self.assertGreater(losses["recoveries"], 0)

    def test_a_server_and_a_worker_are_killed_at_once_at_the_first_step(self):
        losses = self.survive("server-1@1ms,worker-2@1ms", 2)
        self.assertGreater(losses["failovers"], 0)
        self.assertGreater(losses["recoveries"], 0)

    def test_the_other_group_trains_on_what_a_dead_group_leaves(self):
        self.survive("worker-1@1ms", 1, workers=1, epochs=12)


class AdasumTest(cluster.ProcessTest):
    """A batch eight times larger than the one that the learning rate was chosen for."""

    # Of 0.05, 0.1 and 0.2 the best for one worker with this batch, one pass and no momentum.
    _BATCH, _RATE = 16, 0.1
    _TARGET = 0.846

    def accuracy(self, workers, rate, *options):
        run = self.run_to_end(
            "covey run",
            [cluster.COVEY, "run", "--servers", 1, "--groups", 1, "--workers", workers,
             "--scheduler-binary", cluster.SCHEDULER, "--server-binary", cluster.SERVER, "--",
             cluster.FASHION_MNIST, "--epochs", 1, "--hidden", 64, "--contract", "bsp",
             "--momentum", 0, "--fixed-split", "--batch", self._BATCH, "--learning-rate", rate, *options],
            seconds=240)
        self.assertEqual(0, run.code, run)
        accuracy = json.loads(run.lines("stdout")[-1])["test_accuracy"]
        print(f"{workers} workers, rate {rate} {' '.join(options)}: {accuracy:.4f}", flush=True)
        return accuracy

    def test_reaches_the_target_at_the_rate_of_the_small_batch(self):
        self.assertGreater(self.accuracy(1, self._RATE), self._TARGET)
        self.assertGreater(self.accuracy(8, self._RATE, "--adasum"), self._TARGET)
        self.assertLess(self.accuracy(8, self._RATE), self._TARGET)
        self.assertLess(self.accuracy(8, 8 * self._RATE), self._TARGET)


if __name__ == "__main__":
    report.main()
