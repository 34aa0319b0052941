# SPDX-License-Identifier: Apache-2.0
"""`covey export`, and `covey run --export`, with real clusters."""

import json
import os

from tests import report
from tests.process import cluster
from tests.process import npy_file
from tests.process import safetensors_file


class CliExportTest(cluster.ProcessTest):

    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.folder, "model.safetensors")

    def covey(self, *options):
        return self.run_to_end("covey export", [cluster.COVEY, "export", *options])

    def export(self, address, *more):
        return self.covey("--scheduler", address, "--job", cluster.JOB, "--out", self.path, *more)

    def refused(self, code, message, address, *more):
        run = self.export(address, *more)
        self.assertEqual(code, run.code, run)
        self.assertIn(message, run.lines("stderr")[-1])

    def files(self):
        return sorted(os.listdir(os.path.dirname(self.path)))

    def test_a_running_cluster(self):
        running = cluster.Cluster(self, servers=2)
        before = self.files()
        self.refused(1, "no tables", running.address)
        for _ in range(3):
            running.count()
        for kind, name in [("float32", "F32"), ("float16", "F16"), ("bfloat16", "BF16")]:
            run = self.export(running.address, "--type", kind, "--tables", "counters")
            self.assertEqual(0, run.code, run)
            tensors, metadata = safetensors_file.read(self.path)
            self.assertEqual({"counters": (name, [4], [3.0] * 4)}, tensors)
            self.assertEqual("pt", metadata["format"])
        run = self.export(running.address, "-o", "json")
        written = json.loads("".join(run.lines("stdout")))
        self.assertEqual(os.path.getsize(self.path), written["bytes"])
        self.assertEqual([{"name": "counters", "shape": [4], "version": 3}], written["tables"])

        self.refused(1, "no table 'none'", running.address, "--tables", "counters,none")
        self.assertEqual(3.0, safetensors_file.read(self.path)[0]["counters"][2][0])
        self.assertEqual(sorted([*before, "model.safetensors"]), self.files())

    def test_one_table_as_npy(self):
        running = cluster.Cluster(self, servers=2)
        for _ in range(3):
            running.count()
        self.path = os.path.join(self.folder, "counters.npy")
        for kind, name in [("float32", "<f4"), ("float16", "<f2")]:
            run = self.export(running.address, "--type", kind)
            self.assertEqual(0, run.code, run)
            self.assertEqual((name, (4,), [3.0] * 4), npy_file.read(self.path))
        self.refused(2, "bfloat16, which NPY files do not have", running.address,
                     "--type", "bfloat16")
        self.assertEqual("<f2", npy_file.read(self.path)[0])

    def test_several_tables_are_not_one_npy(self):
        self.path = os.path.join(self.folder, "model.npy")
        run = self.start_run(1, 1, [cluster.SYNTHETIC, "--tensors", 2, "--tensor-kib", 1,
                                    "--steps", 1], ["--export", self.path])
        self.assertEqual(1, run.exit_code(), run)
        self.assertRegex(str(run), "holds one table, and these are 3; name one, as in --tables ")
        self.assertFalse(os.path.exists(self.path))

    def test_wrong_usage_and_nobody(self):
        self.refused(3, "127.0.0.1:1", "127.0.0.1:1")
        self.refused(2, "choose float32, float16 or bfloat16", "127.0.0.1:1", "--type", "int8")
        run = self.covey("--scheduler", "127.0.0.1:1")
        self.assertEqual(2, run.code, run)
        self.assertIn("--out model.safetensors", run.lines("stderr")[0])
        self.assertEqual([], self.files())

    def run_program(self, text):
        script = os.path.join(self.folder, "program")
        with open(script, "w", encoding="ascii") as file:
            file.write(f"#!/bin/sh\n{text}\n")
        os.chmod(script, 0o755)
        run = self.start_run(1, 1, [script], ["--export", self.path])
        run.code = run.exit_code()
        return run

    def test_a_run_leaves_its_model(self):
        run = self.run_program(f'{cluster.COUNTER} "$COVEY_SCHEDULER" "$COVEY_JOB"')
        self.assertEqual(0, run.code, run)
        self.assertIn(f"wrote {self.path}: 1 table", str(run))
        self.assertEqual([1.0] * 4, safetensors_file.read(self.path)[0]["counters"][2])

    def test_a_run_that_fails_leaves_no_model(self):
        run = self.run_program(f'{cluster.COUNTER} "$COVEY_SCHEDULER" "$COVEY_JOB"; exit 1')
        self.assertEqual(1, run.code, run)
        self.assertFalse(os.path.exists(self.path))

    def test_a_model_that_cannot_be_written_fails_the_run(self):
        run = self.run_program("true")
        self.assertEqual(1, run.code, run)
        self.assertIn("--export: the cluster has no tables", run.lines("stderr")[-1])


if __name__ == "__main__":
    report.main()
