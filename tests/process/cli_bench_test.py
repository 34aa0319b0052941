# SPDX-License-Identifier: Apache-2.0
"""`covey bench`: its output, not its speed."""

import json

from tests import report
from tests.process import cluster

_SMALL = ["--sizes", "4KiB,1MiB", "--repetitions", "2", "--duration", "1ms", "--round-trips", "5",
          "--memory-bytes", "64KiB", "--quiet-wait", "0"]


class CliBenchTest(cluster.ProcessTest):

    def bench(self, *arguments):
        return self.run_to_end("bench", [cluster.COVEY, "bench", *arguments])

    def measured(self, *arguments):
        run = self.bench(*arguments)
        self.assertEqual(0, run.code, run)
        return json.loads("".join(run.lines("stdout")))

    def test_ours_and_limits_in_the_same_repetitions(self):
        result = self.measured(*_SMALL)
        rows = {(row["transport"], row["what"], row["bytes"]): row for row in result["figures"]}
        for transport in ["tcp", "ipc"]:
            for operation in ["covey push", "covey pull", "raw socket", "raw zeromq"]:
                for quantile in ["p50", "p99", "p99.9"]:
                    self.assertIn((transport, f"{operation} {quantile}", 64), rows)
            for what in ["covey push", "covey pull", "covey push_pull", "raw socket push",
                         "raw socket pull", "raw zeromq"]:
                self.assertIn((transport, what, 4096), rows)
                self.assertIn((transport, what, 1 << 20), rows)
        self.assertIn(("ipc", "ring copy and sum", 1 << 20), rows)
        self.assertIn(("memory", "memory stream", 64 << 10), rows)
        self.assertEqual(["memory stream"], [
            ratio["limit"] for ratio in rows["memory", "covey kernel adam", 64 << 10]["ratios"]])
        left_out = "".join(result["left_out"])
        if ("ipc", "process copy", 1 << 20) not in rows:
            self.assertIn("process copy", left_out)
        if ("ipc", "redis set", 1 << 20) not in rows:
            self.assertIn("redis", left_out)
        for row in result["figures"]:
            self.assertEqual(2, len(row["repetitions"]), row)
            self.assertGreater(row["min"], 0, row)
            self.assertLessEqual(row["min"], row["median"])
            self.assertLessEqual(row["median"], row["max"])
        push = rows["ipc", "covey push", 1 << 20]
        self.assertLessEqual({"raw socket push", "raw zeromq", "ring copy and sum"},
                             {ratio["limit"] for ratio in push["ratios"]})
        for ratio in push["ratios"]:
            self.assertLessEqual(ratio["low"], ratio["high"])
        self.assertGreater(push["cost"]["server_pss_bytes"], 1 << 20)
        self.assertGreater(push["cost"]["client_pss_bytes"], 1 << 20)

    def test_the_environment_and_the_quietness_are_part_of_the_result(self):
        result = self.measured("--blocks", "memory", "--transport", "ipc", "--label", "abc123",
                               *_SMALL)
        for name in ["version", "processor", "kernel", "huge_pages", "congestion_control",
                     "open_mpi", "compiler"]:
            self.assertIn(name, result["environment"])
        self.assertEqual("abc123", result["environment"]["label"])
        self.assertEqual(2, result["quietness"]["kept"])

    def test_blocks(self):
        result = self.measured("--blocks", "buffered,adam,fresh,mixed,replicated,durable,training,fleet",
                               "--transport", "ipc", "--limits=false", *_SMALL)
        measured = {(row["what"], row["bytes"]) for row in result["figures"]}
        for what in ["covey push buffered", "covey pull adam", "covey pull repeated",
                     "covey pull after push", "covey small pull p50",
                     "covey push beside small pulls", "covey push_pull r=2",
                     "covey push buffered r=2", "covey push buffered adam r=2",
                     "covey push 2x2"]:
            self.assertIn((what, 1 << 20), measured)
        durable = next(row for row in result["figures"] if row["what"] == "covey push buffered r=2")
        self.assertEqual(["covey push beside buffered r=2"],
                         [ratio["limit"] for ratio in durable["ratios"]])
        self.assertEqual(2, result["servers"])
        self.assertTrue(all(what.startswith("covey ") for what, _ in measured))

    def test_collectives_and_what_is_missing_beside_them(self):
        result = self.measured("--blocks", "collectives", "--transport", "ipc", "--members", "2",
                               "--algorithms", "auto,ring", "--sizes", "4KiB",
                               "--repetitions", "1", "--quiet-wait", "0")
        measured = {row["what"] for row in result["figures"]}
        self.assertLessEqual({"covey all-reduce auto x2", "covey all-reduce ring x2"}, measured)
        left_out = "".join(result["left_out"])
        for peer in ["open mpi", "gloo"]:
            self.assertIn(peer, left_out + "".join(measured))

    def test_tables_with_replicas_are_measured_in_turns(self):
        result = self.measured("--blocks", "rates", "--transport", "ipc", "--replicas", "1,2",
                               *_SMALL)
        self.assertEqual(2, result["servers"])
        measured = {(row["what"], row["bytes"]) for row in result["figures"]}
        for operation in ["covey push", "covey push r=2", "covey pull r=2", "covey push_pull r=2"]:
            self.assertIn((operation, 1 << 20), measured)

    def test_output_is_chosen_as_for_every_command(self):
        small = ["--blocks", "latency", "--transport", "ipc", *_SMALL]
        self.assertIn("figures", self.measured("-o", "json", *small))
        table_run = self.bench("-o", "table", *small)
        self.assertEqual(0, table_run.code, table_run)
        self.assertRegex(table_run.lines("stdout")[0], r"^what +transport +bytes +median")
        self.assertIn("-o", "\n".join(self.bench("--help").lines("stdout")))

    def test_a_build_is_compared_with_another(self):
        small = ["--blocks", "latency", "--transport", "ipc", *_SMALL]
        # With a tolerance of nearly everything, no machine finds the same program slower.
        result = self.measured("--against", cluster.COVEY, "--tolerance", "99.9%", *small)
        self.assertFalse(result["slower"])
        self.assertEqual({"covey push p50", "covey pull p50"},
                         {row["what"] for row in result["rows"]})
        missing = self.bench("--against", cluster.COVEY + ".missing", *small)
        self.assertEqual(1, missing.code, missing)

    def scaling(self, kind, *program, workers="1,2,4"):
        run = self.bench("scaling", "--scaling", kind, "--workers", workers, "--repetitions", 1, "--batch", 64,
                         "-o", "json", "--", *program)
        self.assertEqual(0, run.code, run)
        return json.loads("".join(run.lines("stdout")))

    def test_scaling_names_its_baseline(self):
        # The rate of this program is the batch that it is given.
        program = ["/bin/sh", "-c", "echo 'result {\"samples_per_second\": {batch}}'"]
        for kind, batches, efficiencies in [("weak", [64, 128, 256], [1, 1, 1]),
                                            ("strong", [64, 64, 64], [1, 0.5, 0.25])]:
            with self.subTest(kind):
                result = self.scaling(kind, *program)
                self.assertEqual(kind, result["scaling"])
                self.assertEqual({"workers": 1, "samples_per_second": 64}, result["baseline"])
                self.assertEqual([1, 2, 4], [row["workers"] for row in result["rows"]])
                self.assertEqual(batches, [row["batch"] for row in result["rows"]])
                self.assertEqual(efficiencies, [row["efficiency"] for row in result["rows"]])

    def test_a_failed_run_does_not_discard_those_before_it(self):
        program = ["/bin/sh", "-c", "[ {batch} = 64 ] && echo 'result {\"samples_per_second\": 7}'"]
        run = self.bench("scaling", "--workers", "1,2", "--batch", 64, "-o", "json", "--", *program)
        self.assertEqual(1, run.code, run)
        result = json.loads("".join(run.lines("stdout")))
        self.assertEqual([(1, 7)], [(row["workers"], row["samples_per_second"])
                                    for row in result["rows"]])

    def test_scaling_of_a_training_program(self):
        result = self.scaling("strong", cluster.SYNTHETIC, "--group-batch", "{batch}", "--steps", 10,
                              "--tensors", 1, "--tensor-kib", 4, workers="2,4")
        self.assertEqual(2, result["baseline"]["workers"])
        self.assertGreater(result["baseline"]["samples_per_second"], 0)
        for row in result["rows"]:
            self.assertGreater(row["efficiency"], 0)

    def test_wrong_usage_of_scaling(self):
        for arguments, complaint in [
            (["--scaling", "wide", "--", "synthetic"], "'wide' is neither weak nor strong"),
            ([], "no program"),
            (["--", "/bin/true"], "says how many samples"),
            (["--scaling", "strong", "--workers", "1,3", "--", "/bin/true", "{batch}"],
             "3 workers cannot"),
            (["--workers", "0", "--", "/bin/true", "{batch}"], "not a number of workers"),
            (["--out", "missing/scaling.json", "--", "/bin/true", "{batch}"], "missing"),
        ]:
            run = self.bench("scaling", *arguments)
            self.assertEqual(2, run.code, run)
            self.assertIn(complaint, run.lines("stderr")[0])
        run = self.bench("scaling", "--workers", "1", "--", "/bin/echo", "{batch}")
        self.assertEqual(1, run.code, run)
        self.assertIn("samples_per_second", run.lines("stderr")[-1])

    def test_wrong_usage(self):
        for arguments, complaint in [
            (["--sizes", "3"], "multiple of 4"),
            (["--sizes", "much"], "--sizes"),
            (["--transport", "pigeon"], "none of auto, tcp or ipc"),
            (["-o", "xml"], "choose table or json"),
            (["--repetitions", "0"], "choose 1 to"),
            (["--replicas", "0"], "choose 1 to 5"),
            (["--repetition", "2"], "did you mean --repetitions?"),
            (["--blocks", "latncy"], "did you mean latency?"),
            (["--tolerance", "all"], "a tolerance is a percentage"),
            (["--members", "1"], "choose 2 to"),
            (["--algorithms", "magic"], "ring"),
            (["--memory-bytes", "5"], "multiple of 4KiB"),
            (["--limit-partner", "friend"], "no partner of a limit"),
        ]:
            run = self.bench(*arguments)
            self.assertEqual(2, run.code, run)
            self.assertEqual(1, len(run.lines("stderr")), run)
            self.assertIn(complaint, run.lines("stderr")[0])


if __name__ == "__main__":
    report.main()
