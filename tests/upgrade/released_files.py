# SPDX-License-Identifier: Apache-2.0
"""Files that the processes of a release have written: X.Y.Z.tar.xz beside this file.

  log           of a scheduler: two servers, two groups that have trained, five tables
  store         of the same job: snapshots, flushed each second, the newest one of all updates
  recording     of the same job, by both servers
  status.json   what `covey status -o json` said then
  model.safetensors, rows    the values then, exported by that release

At a release, tests/upgrade/previous_release builds its programs, and
  bazel build --config=opt //tests/upgrade:released_files_writer
  bazel-bin/tests/upgrade/released_files_writer FOLDER X.Y.Z tests/upgrade
writes such a file with them. It is written once, and never changed.
"""

import json
import os
import pathlib
import shutil
import sys
import tarfile
import unittest

from tests.process import cluster, ledger, program
from tests.upgrade import release

JOB = "released"
# A sparse table of the job.
ROWS = "ledger/async/rows"
_GROUPS, _STEPS = 2, 6
_HERE = pathlib.Path(__file__).parent


def versions():
    return sorted(path.name.removesuffix(".tar.xz") for path in _HERE.glob("*.tar.xz"))


def dense_tables(status):
    """Their names."""
    return sorted(table["spec"]["name"] for table in status["view"]["tables"]
                  if "sparse" not in table["spec"])


def unpack(version, folder):
    with tarfile.open(_HERE / f"{version}.tar.xz") as archive:
        archive.extractall(folder)


class Writer(cluster.ProcessTest):
    """Not a test: lets the processes of a release run a small job, and packs what they wrote."""

    def __init__(self, programs, archive):
        super().__init__()
        self._programs, self._archive = programs, archive

    def runTest(self):
        made = {name: os.path.join(self.folder, name) for name in (
            "log", "store", "recording", "status.json", "model.safetensors", "rows")}
        log, store = (made[name] + ".live" for name in ("log", "store"))
        running = cluster.Cluster(
            self, servers=2, groups=_GROUPS, job=JOB, scheduler_program=self._programs.scheduler,
            server_program=self._programs.server,
            scheduler_options=["--log-file", log, "--store", store, "--durability", "flushed:1s"],
            server_options=["--store", store, "--record", made["recording"]])
        self._push(running)
        self._train(running)
        program.await_true(lambda: self._is_stored(store), "a flush of all updates")
        status = running.status()
        # As a job leaves them whose processes are killed at once.
        shutil.copy(log, made["log"])
        shutil.copytree(store, made["store"])
        with open(made["status.json"], "w", encoding="utf-8") as file:
            json.dump(status, file)
        of_job = ["--scheduler", running.address, "--job", JOB, "--out"]
        self._covey("export", "--tables", ",".join(dense_tables(status)), *of_job,
                    made["model.safetensors"])
        self._covey("export-rows", ROWS, *of_job, made["rows"])
        running.stop()
        with tarfile.open(self._archive, "w:xz") as archive:
            for name, path in made.items():
                archive.add(path, name, filter=_without_owner)

    def _train(self, running):
        """Slowly, so that flushes have logs of a few updates."""
        members = [
            self.start(f"synthetic-{rank}", [
                self._programs.synthetic, "--contract", "async", "--tensors", 2, "--tensor-kib", 1,
                "--steps", _STEPS, "--adam", "--spread", 1, "--step-noise", 0.5, "--group-batch", 8,
                "--milliseconds-per-sample", 250,
            ], running.environment(rank)) for rank in range(_GROUPS)]
        for member in members:
            self.assertEqual(0, member.exit_code(), member)

    def _push(self, running):
        """A few batches only: the pause between them is long."""
        producers = [
            ledger.Producer(self, running, "async", slot, rows=rows,
                            client=self._programs.ledger_client,
                            options=["--batch", 3, "--pause", "1s"])
            for slot, rows in ((0, False), (1, True))]
        for producer in producers:
            producer.await_durable(3, "durable pushes")
        ledger.stop(self, running, producers)

    def _is_stored(self, store):
        shown = json.loads(self._covey("snapshot", "--store", store, "show", "-o", "json"))
        versions = {table["name"]: table["version"]["least"] for table in shown["tables"]}
        return (versions.get("synthetic/0") == versions.get("synthetic/1") == _GROUPS * _STEPS
                and versions.get("synthetic/figures") == _GROUPS)

    def _covey(self, *words):
        """What it prints."""
        run = self.run_to_end(f"covey {words[0]}", [self._programs.covey, *words])
        self.assertEqual(0, run.code, run)
        return "\n".join(run.lines("stdout"))


def _without_owner(entry):
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry


if __name__ == "__main__":
    _programs, _version, _folder = sys.argv[1:]
    _archive = os.path.join(_folder, f"{_version}.tar.xz")
    _writer = Writer(release.Release.in_folder(_version, _programs), _archive)
    sys.exit(not unittest.TextTestRunner().run(_writer).wasSuccessful())
