# SPDX-License-Identifier: Apache-2.0
"""`covey chaos`: real clusters under visible faults; tests the counts, not the speed."""

import json

from tests import report
from tests.process import cluster


class CliChaosTest(cluster.ProcessTest):

    def chaos(self, *arguments, **options):
        return self.run_to_end("chaos", [
            cluster.COVEY, "chaos", *arguments, "--scheduler-binary", cluster.SCHEDULER,
            "--server-binary", cluster.SERVER], **options)

    def test_a_partition_does_no_harm(self):
        run = self.chaos("partition", "-o", "json", seconds=120)
        verdict = json.loads("".join(run.lines("stdout")))
        self.assertEqual("partition", verdict["experiment"])
        promises = {promise["what"]: promise for promise in verdict["promises"]}
        notes = verdict["notes"]
        for count in ["acknowledged updates lost", "updates applied twice",
                      "tables with half an update",
                      "pushes acknowledged by the server that is cut off"]:
            self.assertEqual(0, promises[count]["measured"], run)
        # There was a partition, and it was healed: null means forever.
        self.assertNotEqual("never", notes["declared dead after"], run)
        for time in ["until pushes to its shards are acknowledged again",
                     "after healing, until it has ended and all replicas exist again"]:
            self.assertIsNotNone(promises[time]["measured"], run)

    def test_wrong_usage(self):
        for arguments, complaint in [
            ([], "which experiment?"),
            (["partitoin"], "did you mean partition?"),
        ]:
            run = self.chaos(*arguments)
            self.assertEqual(2, run.code, run)
            self.assertIn(complaint, "".join(run.lines("stderr")))

    def test_help_names_the_experiments(self):
        run = self.chaos("--help")
        self.assertEqual(0, run.code, run)
        for experiment in ["kill-server", "partition", "restart-scheduler", "freeze-worker",
                           "kill-group"]:
            self.assertIn(experiment, "".join(run.lines("stdout")))


if __name__ == "__main__":
    report.main()
