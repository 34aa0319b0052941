"""The main job, end to end and small: two groups learn Fashion-MNIST from one command."""

import json
import os
import unittest

from tests.process import cluster

_ACCURACY_MIN = 0.8
_KEYS = {"test_accuracy", "train_seconds", "samples_per_second", "servers", "groups", "workers",
         "contract"}


class FashionMnistTest(cluster.ProcessTest):
    def run_job(self, contract, groups, workers, transport, *options, epochs=1):
        """A run that has to go well; what it came to."""
        report = os.path.join(self.folder, "report.html")
        run = self.run_to_end(
            "covey run",
            [cluster.COVEY, "run", "--servers", 2, "--groups", groups, "--workers", workers,
             "--transport", transport, "--report", report, "--scheduler-binary", cluster.SCHEDULER,
             "--server-binary", cluster.SERVER, *options, "--",
             cluster.FASHION_MNIST, "--epochs", epochs, "--hidden", 32, "--contract", contract],
            seconds=240)
        self.assertEqual(0, run.code, run)
        self.assertEqual({}, run.descendants())
        with open(report, encoding="utf-8") as file:
            self.assertIn("<svg", file.read())
        result = json.loads(run.lines("stdout")[-1])
        print(result)
        self.assertLessEqual(_KEYS, set(result))
        self.assertEqual((2, groups, contract),
                         (result["servers"], result["groups"], result["contract"]))
        self.assertGreater(result["test_accuracy"], _ACCURACY_MIN)
        self.assertEqual(epochs * 60_000, result["samples"])
        return result

    def test_two_groups(self):
        self.run_job("buffered", groups=2, workers=2, transport="tcp")

    def test_one_group_over_sockets_of_the_file_system(self):
        self.run_job("bsp", groups=1, workers=2, transport="ipc")

    def test_a_server_and_a_worker_are_killed_on_the_way(self):
        # Long enough for `covey run`, which asks twice a second, to hear what came of the deaths.
        result = self.run_job("buffered", 2, 2, "tcp", "--kill", "server-0@100ms,worker-1@300ms",
                              epochs=4)
        losses = result["losses"]
        self.assertEqual(2, losses["died"])
        self.assertGreater(losses["failovers"], 0)
        self.assertEqual(0, losses["shards_lost"])
        self.assertGreater(losses["recoveries"], 0)


if __name__ == "__main__":
    unittest.main()
