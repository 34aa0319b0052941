# SPDX-License-Identifier: Apache-2.0
"""`covey bench`: its output, not its speed."""

import json

from tests import report
from tests.process import cluster

_SMALL = ["--sizes", "4KiB,3MiB", "--repetitions", "2", "--duration", "10ms", "--round-trips", "5"]


class CliBenchTest(cluster.ProcessTest):

    def bench(self, *arguments):
        return self.run_to_end("bench", [cluster.COVEY, "bench", *arguments])

    def test_json_and_nothing_else(self):
        run = self.bench(*_SMALL)
        self.assertEqual(0, run.code, run)
        figures = json.loads("".join(run.lines("stdout")))["figures"]
        measured = {(row["transport"], row["what"], row["bytes"]) for row in figures}
        for transport in ["tcp", "ipc"]:
            for operation in ["covey push", "covey pull", "covey push_pull", "raw zeromq"]:
                self.assertIn((transport, f"{operation} p50", 64), measured)
                self.assertIn((transport, operation, 4096), measured)
                self.assertIn((transport, operation, 3 << 20), measured)
        for row in figures:
            self.assertEqual(2, len(row["repetitions"]), row)
            self.assertGreater(row["min"], 0, row)
            self.assertLessEqual(row["min"], row["median"])
            self.assertLessEqual(row["median"], row["max"])

    def test_tables_with_replicas_are_measured_in_turns(self):
        run = self.bench("--transport", "ipc", "--replicas", "1,2", *_SMALL)
        self.assertEqual(0, run.code, run)
        result = json.loads("".join(run.lines("stdout")))
        self.assertEqual(2, result["servers"])
        measured = {(row["what"], row["bytes"]) for row in result["figures"]}
        for operation in ["covey push", "covey push r=2", "covey pull r=2", "covey push_pull r=2"]:
            self.assertIn((operation, 3 << 20), measured)

    def test_output_is_chosen_as_for_every_command(self):
        small = ["--transport", "ipc", *_SMALL]
        json_run = self.bench("-o", "json", *small)
        self.assertEqual(0, json_run.code, json_run)
        self.assertIn("figures", json.loads("".join(json_run.lines("stdout"))))
        table_run = self.bench("-o", "table", *small)
        self.assertEqual(0, table_run.code, table_run)
        self.assertRegex(table_run.lines("stdout")[0], r"^what +transport +bytes +median")
        self.assertIn("-o", "\n".join(self.bench("--help").lines("stdout")))

    def test_wrong_usage(self):
        for arguments, complaint in [
            (["--sizes", "3"], "multiple of 4"),
            (["--sizes", "much"], "--sizes"),
            (["--transport", "pigeon"], "neither tcp nor ipc"),
            (["-o", "xml"], "choose table or json"),
            (["--repetitions", "0"], "choose 1 to"),
            (["--replicas", "0"], "choose 1 to 5"),
            (["--repetition", "2"], "did you mean --repetitions?"),
        ]:
            run = self.bench(*arguments)
            self.assertEqual(2, run.code, run)
            self.assertEqual(1, len(run.lines("stderr")), run)
            self.assertIn(complaint, run.lines("stderr")[0])


if __name__ == "__main__":
    report.main()
