# SPDX-License-Identifier: Apache-2.0
"""`covey snapshot import`, and jobs whose tables begin with values of a snapshot."""

import json
import os
import signal
import struct

from tests import report
from tests.process import chains
from tests.process import cluster
from tests.process import npy_file
from tests.process import program
from tests.process import safetensors_file

_COUNT = f'exec {cluster.COUNTER} "$COVEY_SCHEDULER" "$COVEY_JOB"'


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


class StoreCluster(cluster.Cluster):
    """Scheduler and servers have a store."""

    def __init__(self, test, initial_values, **options):
        self._store = test.store
        super().__init__(test, scheduler_options=[
            "--store", test.store, "--initial-values", initial_values,
            "--log-file", os.path.join(test.folder, "log")], **options)

    def server_arguments(self, rank):
        return [*super().server_arguments(rank), "--store", self._store]


class ImportTest(cluster.ProcessTest):

    def setUp(self):
        super().setUp()
        self.store = os.path.join(self.folder, "store")

    def path(self, name):
        return os.path.join(self.folder, name)

    def covey(self, code, *words):
        run = self.run_to_end("covey snapshot",
                              [cluster.COVEY, "snapshot", "--store", self.store, *words])
        self.assertEqual(code, run.code, run)
        return run

    def imported(self, *words):
        return json.loads("".join(self.covey(0, "import", *words, "-o", "json").lines("stdout")))

    def refused(self, code, message, *words):
        self.assertIn(message, self.covey(code, *words).lines("stderr")[-1])
        self.assertEqual([], os.listdir(self.store) if os.path.exists(self.store) else [])

    def import_counters(self, *values):
        path = self.path("counters.npy")
        npy_file.write(path, "<f4", (len(values),), floats(*values))
        return self.imported(path)["name"]

    def run_with(self, *options, code=0):
        """Runs the counter once in a job of its own, and returns the run."""
        script = self.path("count")
        with open(script, "w", encoding="ascii") as file:
            file.write(f"#!/bin/sh\n{_COUNT}\n")
        os.chmod(script, 0o755)
        run = self.start_run(1, 1, [script], ["--store", self.store, *options])
        self.assertEqual(code, run.exit_code(), run)
        return str(run)


class CliImportTest(ImportTest):

    def test_bits_go_through(self):
        """All bits of float32; float16 and bfloat16 become the same numbers."""
        model = self.path("model.safetensors")
        bits = struct.pack("<6I", 0, 0x80000000, 1, 0x7f800000, 0x7fc00123, 0x3f800001)
        safetensors_file.write(model, {
            "h.0/weight": ("F32", [3, 2], bits),
            "half": ("F16", [2], struct.pack("<2e", 1.5, 2.0 ** -24)),
            "brain": ("BF16", [1, 2], b"\x80\x3f\x01\x00"),
            "scale": ("F32", [], floats(3)),
        })
        npy_file.write(self.path("bias.npy"), "<f2", (3,), struct.pack("<3e", 1, -2, 0.25))
        made = self.imported(model, self.path("bias.npy"))
        self.assertEqual(["import-model", 5, []], [made["name"], made["tables"], made["skipped"]])
        self.covey(0, "verify", "import-model")
        out = self.path("out.safetensors")
        self.covey(0, "export", "import-model", "--out", out)
        tensors, _ = safetensors_file.read(out)
        self.assertEqual(bits, struct.pack("<6f", *tensors["h.0/weight"][2]))
        self.assertEqual(("F32", [3, 2]), tensors["h.0/weight"][:2])
        self.assertEqual(("F32", [2], [1.5, 2.0 ** -24]), tensors["half"])
        self.assertEqual(("F32", [1, 2], [1.0, 2.0 ** -133]), tensors["brain"])
        self.assertEqual(("F32", [1], [3.0]), tensors["scale"])
        self.assertEqual(("F32", [3], [1.0, -2.0, 0.25]), tensors["bias"])
        # An export imported under its name makes the same file.
        self.store = self.path("other")
        self.imported(out, "--name", "model")
        self.covey(0, "export", "import-model", "--out", self.path("again.safetensors"))
        with open(out, "rb") as first, open(self.path("again.safetensors"), "rb") as again:
            self.assertEqual(first.read(), again.read())

    def test_a_model_in_several_files(self):
        folder = self.path("gpt2")
        os.mkdir(folder)
        for number, name in [(1, "h.0"), (2, "h.1")]:
            safetensors_file.write(f"{folder}/model-{number}.safetensors",
                                   {name: ("F32", [1], floats(number))})
        index = {"metadata": {"total_size": 8},
                 "weight_map": {"h.0": "model-1.safetensors", "h.1": "model-2.safetensors"}}
        self.write_index(folder, index)
        made = self.imported(folder + "/")
        self.assertEqual(["import-gpt2", 2], [made["name"], made["tables"]])
        self.covey(0, "delete", "import-gpt2")
        self.write_index(folder, {"weight_map": {**index["weight_map"], "h.2": "model-2.safetensors"}})
        self.refused(1, "model-2.safetensors does not hold tensor 'h.2'", "import", folder)
        self.write_index(folder, {"weight_map": {"h.0": "../model-1.safetensors"}})
        self.refused(1, "no name of a file in the model's folder", "import", folder)
        self.write_index(folder, [])
        self.refused(1, "model.safetensors.index.json: it is no JSON object", "import", folder)

    def write_index(self, folder, index):
        with open(f"{folder}/model.safetensors.index.json", "w", encoding="utf-8") as file:
            json.dump(index, file)

    def test_what_no_table_can_hold_is_skipped_by_name(self):
        model = self.path("model.safetensors")
        safetensors_file.write(model, {
            "weight": ("F32", [1], floats(1)), "ids": ("I64", [1], bytes(8)),
            "a b": ("F32", [1], floats(1)), "none": ("F32", [0], b"")})
        made = self.imported(model)
        self.assertEqual(1, made["tables"])
        self.assertEqual(3, len(made["skipped"]))
        self.assertIn("'ids' has elements of type I64", made["skipped"][0])

    def test_other_files_are_refused_and_leave_nothing(self):
        model, cut = self.path("model.safetensors"), self.path("cut.safetensors")
        safetensors_file.write(model, {"weight": ("F32", [2], floats(1, 2))})
        with open(model, "rb") as whole, open(cut, "wb") as file:
            file.write(whole.read()[:-3])
        self.refused(1, "cut.safetensors: ", "import", cut)
        self.refused(1, "tensor 'weight' is in ", "import", model, self.copy(model, "twice"))
        with open(self.path("x.npy"), "wb") as file:
            file.write(b"\x93NUMPY\x01\x00\xff\xff" + b" " * 100)
        self.refused(1, "x.npy: ", "import", model, self.path("x.npy"))
        self.refused(1, "No such file", "import", self.path("none.safetensors"))
        self.refused(1, "is no regular file", "import", "/dev/null")
        with open(self.path("x.pt"), "wb") as file:
            file.write(b"PK")
        self.refused(1, "files that end in .safetensors or .npy", "import", self.path("x.pt"))
        safetensors_file.write(model, {"ids": ("I64", [1], bytes(8))})
        self.refused(1, "there is nothing to import: ", "import", model)
        self.refused(2, "no file given", "import")
        self.refused(2, "'../x' cannot be the name of an import", "import", model, "--name", "../x")

    def copy(self, path, name):
        other = self.path(f"{name}.safetensors")
        with open(path, "rb") as source, open(other, "wb") as file:
            file.write(source.read())
        return other

    def test_an_import_is_listed_kept_and_deleted(self):
        name = self.import_counters(1, 2)
        listed = json.loads("".join(self.covey(0, "list", "-o", "json").lines("stdout")))
        self.assertEqual([(name, True, True)],
                         [(one["name"], one["imported"], one["complete"]) for one in listed])
        self.assertIn(f"the store has {name}",
                      str(self.covey(1, "import", self.path("counters.npy"))))
        self.assertIn("no complete snapshot of a job", str(self.covey(1, "verify")))
        os.unlink(os.path.join(self.store, name, "MANIFEST"))
        self.assertIn("an import may be writing it", str(self.covey(1, "delete", name)))
        self.covey(0, "delete", name, "--force")
        self.assertEqual([], os.listdir(self.store))


class InitialValuesTest(ImportTest):

    def test_tables_of_many_shards_begin_with_the_imported_values(self):
        """The synthetic model begins at its optimum, so its gradients are 0 and it stays there."""
        kib = 3000
        packs = [("F32", lambda value: struct.pack("<f", value)),
                 ("F16", lambda value: struct.pack("<e", value)),
                 ("BF16", lambda value: struct.pack("<f", value)[2:])]
        tensors = {}
        for tensor, (kind, pack) in enumerate(packs):
            period = b"".join(pack(1 + (i + 7 * tensor) % 64 / 64) for i in range(64))
            tensors[f"synthetic/{tensor}"] = (kind, [kib * 256], period * (kib * 4))
        model, out = self.path("model.safetensors"), self.path("out.safetensors")
        safetensors_file.write(model, tensors)
        name = self.imported(model)["name"]
        self.result_of(1, 1, [cluster.SYNTHETIC, "--tensors", 3, "--tensor-kib", kib, "--steps", 2],
                       ["--servers", 2, "--store", self.store, "--initial-values", name,
                        "--export", out])
        trained, _ = safetensors_file.read(out)
        for tensor in range(3):
            wanted = [1 + (i + 7 * tensor) % 64 / 64 for i in range(64)] * (kib * 4)
            self.assertEqual(wanted, trained[f"synthetic/{tensor}"][2])

    def test_a_table_of_another_length_is_refused(self):
        name = self.import_counters(1, 2, 3, 4, 5)
        run = self.run_with("--initial-values", name, code=1)
        self.assertIn(f"it has 4 elements, but its initial values in {name} have 5", run)

    def test_what_is_not_there_is_refused(self):
        name = self.import_counters(1, 2, 3, 4)
        self.assertIn(f"{name} has no table 'other'",
                      self.run_with("--initial-values", f"{name},other", code=1))
        self.assertIn("no complete snapshot", self.run_with("--initial-values", "latest", code=1))
        self.assertIn("store/import-x: No such file", self.run_with("--initial-values", "import-x", code=1))

    def test_an_import_cannot_be_resumed(self):
        name = self.import_counters(1, 2, 3, 4)
        self.assertIn(f"start a new job with --initial-values {name}",
                      self.run_with("--resume", name, code=1))
        # It is not the newest snapshot either.
        self.assertIn("counted 1 times", self.run_with("--resume", "if-any"))

    def test_a_table_of_another_job(self):
        self.assertIn("counted 1 times", self.run_with())
        # The last state of that run is its newest snapshot.
        run = self.run_with("--job", "other", "--initial-values", "latest,counters")
        self.assertIn("counted 2 times", run)
        self.assertIn("with the values of snapshot-", run)

    def test_losses_and_a_restart(self):
        name = self.import_counters(100, 100, 100, 100)
        running = StoreCluster(self, name)
        running.scheduler.signal(signal.SIGKILL)
        running.scheduler.exit_code()
        running.restart_scheduler()
        self.assertEqual(101, running.count())
        # The only server dies with the content: the table begins anew, as it did at first.
        running.servers[0].kill()
        program.await_true(lambda: not running.servers[0].running(), "the end of the server")
        running.start_server(0)
        self.assertEqual(101, running.count())
        self.assertEqual(102, running.count())

    def test_replicas_begin_alike(self):
        name = self.import_counters(100, 100, 100, 100)
        running = StoreCluster(self, name, servers=2)
        self.assertEqual(101, running.count())
        for count in range(2):
            running.await_status(
                lambda status: len(cluster.nodes(status, "SERVER")) == 2 and chains.whole(status),
                "two full replicas")
            running.servers[count].kill()
            self.assertEqual(102 + count, running.count())
            running.start_server(count)


if __name__ == "__main__":
    report.main()
