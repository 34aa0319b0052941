"""The main job, end to end and small: two groups learn Fashion-MNIST from one command."""

import json
import os
import unittest

from tests.process import cluster

_ACCURACY_MIN = 0.8
_KEYS = {"test_accuracy", "train_seconds", "samples_per_second", "servers", "groups", "workers",
         "contract"}


class FashionMnistTest(cluster.ProcessTest):
    def run_job(self, contract, groups, workers, transport):
        """A run that has to go well."""
        report = os.path.join(self.folder, "report.html")
        run = self.run_to_end(
            "covey run",
            [cluster.COVEY, "run", "--servers", 2, "--groups", groups, "--workers", workers,
             "--transport", transport, "--report", report, "--scheduler-binary", cluster.SCHEDULER,
             "--server-binary", cluster.SERVER, "--",
             cluster.FASHION_MNIST, "--epochs", 1, "--hidden", 32, "--contract", contract],
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

    def test_two_groups(self):
        self.run_job("buffered", groups=2, workers=2, transport="tcp")

    def test_one_group_over_sockets_of_the_file_system(self):
        self.run_job("bsp", groups=1, workers=2, transport="ipc")


if __name__ == "__main__":
    unittest.main()
