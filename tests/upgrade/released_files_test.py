# SPDX-License-Identifier: Apache-2.0
"""The present processes read what those of each earlier release have written."""

import functools
import json
import os

from tests import report
from tests.process import chains, cluster, npy_file, safetensors_file
from tests.upgrade import released_files


# Of table definitions, with what they are in tables of releases that did not know them.
_NEWER_FIELDS = {"value_format": "WIRE_FLOAT32"}


def texts(status):
    """All events of the job, a line each."""
    return "\n".join(event["text"] for event in status["events"])


def of_each_version(test):
    """The test once for each version, whose files it finds unpacked."""

    @functools.wraps(test)
    def run(self):
        versions = released_files.versions()
        self.assertIn("0.1.0", versions)
        for version in versions:
            with self.subTest(version):
                self.files = os.path.join(self.folder, version)
                released_files.unpack(version, self.files)
                with open(self.path("status.json"), encoding="utf-8") as file:
                    self.status = json.load(file)
                test(self)

    return run


class ReleasedFilesTest(cluster.ProcessTest):

    def path(self, name):
        return os.path.join(self.files, name)

    def covey(self, *words):
        run = self.run_to_end(f"covey {words[0]}", [cluster.COVEY, *words])
        self.assertEqual(0, run.code, run)
        return "\n".join(run.lines("stdout"))

    def start_job(self, *options):
        store = ["--store", self.path("store")]
        return cluster.Cluster(self, servers=2, groups=2, job=released_files.JOB,
                               scheduler_options=[*store, *options], server_options=store)

    def assert_tables(self, status):
        """The tables are those of then: definitions, and how they are cut into shards."""
        then, now = ({table["spec"]["name"]: (table["id"], {**_NEWER_FIELDS, **table["spec"]}, [
            (shard.get("first_element"), shard["element_count"]) for shard in table["shards"]
        ]) for table in each["view"]["tables"]} for each in (self.status, status))
        self.assertEqual(then, now)

    def model(self):
        """The values of all dense tables then: by name (type, shape, values)."""
        return safetensors_file.read(self.path("model.safetensors"))[0]

    def assert_values(self, *place):
        """The values are those of then, to the bit."""
        exported = self.path("exported.safetensors")
        dense = ",".join(released_files.dense_tables(self.status))
        self.covey("export", "--tables", dense, "--out", exported, *place)
        self.assertEqual(self.model(), safetensors_file.read(exported)[0])
        self.assert_rows(*place)

    def assert_rows(self, *place):
        exported = self.path("exported-rows")
        self.covey("export-rows", released_files.ROWS, "--out", exported, *place)
        for name in ("keys.npy", "values.npy"):
            then, now = (npy_file.read(os.path.join(folder, name))
                         for folder in (self.path("rows"), exported))
            self.assertGreater(len(then[2]), 0)
            self.assertEqual(then, now)

    def assert_goes_on(self, running):
        self.assert_tables(running.status())
        self.assert_values("--scheduler", running.address, "--job", released_files.JOB)
        newest = max(int(name.split("-")[1]) for name in os.listdir(self.path("store")))
        created = json.loads(self.covey(
            "snapshot", "create", "--scheduler", running.address, "-o", "json"))["name"]
        self.assertGreater(int(created.split("-")[1]), newest)
        running.stop()

    @of_each_version
    def test_a_scheduler_goes_on_from_the_log(self):
        running = self.start_job("--log-file", self.path("log"))
        # All servers are lost, so all shards begin with the newest snapshot, which the log names.
        status = running.await_status(
            lambda status: chains.whole(status) and "from the newest snapshot" in texts(status),
            "all shards")
        self.assertRegex(texts(status), r"scheduler restarted from record \d+, epoch \d+")
        self.assertGreater(int(status["view"]["epoch"]), int(self.status["view"]["epoch"]))
        self.assert_goes_on(running)

    @of_each_version
    def test_another_job_continues_the_snapshot(self):
        running = self.start_job("--resume", "latest")
        running.await_status(
            lambda status: chains.whole(status) and "tables continue snapshot-" in texts(status),
            "all tables")
        self.assert_goes_on(running)

    @of_each_version
    def test_the_snapshots_are_intact(self):
        store = ["--store", self.path("store")]
        listed = json.loads(self.covey("snapshot", *store, "list", "-o", "json"))
        self.assertGreater(len(listed), 1)
        for snapshot in listed:
            self.covey("snapshot", *store, "verify", snapshot["name"])
        self.assert_rows("--snapshot", "latest", *store)

    @of_each_version
    def test_the_recording_is_replayed(self):
        values = self.path("replayed")
        replayed = json.loads(self.covey(
            "replay", self.path("recording"), "--export", values, "-o", "json"))
        self.assertEqual([], replayed["notes"])
        self.assertGreater(sum(table["digests"] for table in replayed["tables"]), 0)
        for name, (_, shape, elements) in self.model().items():
            path = os.path.join(values, name.replace("/", "%2F") + ".npy")
            self.assertEqual(("<f4", tuple(shape), elements), npy_file.read(path), name)


if __name__ == "__main__":
    report.main()
