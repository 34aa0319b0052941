# SPDX-License-Identifier: Apache-2.0
"""The templates of deploy/slurm, under a Slurm of three nodes."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest

from tests import report
from tests.deploy import slurm
from tests.process import cluster, program

_TEMPLATES = pathlib.Path(__file__).parents[2] / "deploy/slurm"


@unittest.skipIf(slurm.MISSING, slurm.MISSING)
class SlurmTest(cluster.ProcessTest):
    def setUp(self):
        super().setUp()
        self.slurm = slurm.Slurm(self)
        self.mine = pathlib.Path(self.folder) / "my-job"
        self.mine.mkdir()
        (self.mine / "bin").mkdir()
        for path in (cluster.COVEY, cluster.SCHEDULER, cluster.SERVER):
            (self.mine / "bin" / os.path.basename(path)).symlink_to(os.path.realpath(path))
        for path in (*_TEMPLATES.glob("*.sh"), *_TEMPLATES.glob("*.sbatch")):
            shutil.copy(path, self.mine)
        self.set("binaries", f"{self.mine}/bin")

    def set(self, name, value):
        """Edits a line of settings.sh."""
        path = self.mine / "settings.sh"
        text, count = re.subn(rf"^{name}=.*$", f"{name}={value}", path.read_text(), flags=re.M)
        self.assertEqual(1, count, name)
        path.write_text(text)

    def train(self, *options):
        words = " ".join(str(option) for option in options)
        self.set("program", f"({os.path.realpath(cluster.FASHION_MNIST)} {words})")

    def log(self, job, name, folder="covey-{}-0"):
        path = self.mine / folder.format(job) / f"{name}.log"
        return path.read_text() if path.exists() else ""

    def await_progress(self, job):
        program.await_true(lambda: any("progress {" in self.log(job, f"workers-{rank}")
                                       for rank in range(3)), "progress")

    def output(self, job):
        return f"{(self.mine / f'slurm-{job}.out').read_text()}\n" + "\n".join(
            f"{path}:\n{path.read_text()}" for path in sorted(self.mine.glob("covey-*/*.log")))

    def targets(self, job):
        """What Prometheus is to scrape, as the README finds it."""
        [command] = re.findall(r"`(printf .*) > targets.json`",
                               (_TEMPLATES / "README.md").read_text())
        shown = subprocess.run(["bash", "-c", command.replace("JOB", str(job))], cwd=self.mine,
                               capture_output=True, text=True, check=True).stdout
        [found] = json.loads(shown)
        return found["targets"]

    def result_of(self, text):
        return json.loads(re.search(r"^result (.*)$", text, re.M).group(1))

    def assert_completed(self, job):
        self.assertEqual("COMPLETED 0:0", self.slurm.await_end(job), self.output(job))

    def test_one_allocation_trains_fashion_mnist(self):
        self.train("--epochs", 1, "--contract", "buffered")
        self.set("metrics", "true")
        job = self.slurm.submit("job.sbatch", self.mine)
        self.assert_completed(job)
        self.assertEqual(7, len(self.targets(job)), "a scheduler, three servers, three workers")
        result = self.result_of("".join(self.log(job, f"workers-{rank}") for rank in range(3)))
        self.assertEqual(3, result["workers"])
        self.assertGreater(result["test_accuracy"], 0.7)
        for rank, host in enumerate(slurm.NODES):
            # Each with the rank of its task, and in its rack.
            text = self.log(job, f"servers-{rank}")
            self.assertIn(f'"rank":{rank}'.replace('"', ""), text.replace('"', "").replace(" ", ""))
            self.assertIn(f"spine/rack{rank // 2}/{host}", text)
            self.assertIn("server_left", text)
        # The last state, with which another job could go on.
        self.assertEqual(1, len(list((self.mine / "store").glob("snapshot-*/MANIFEST"))))

    def test_a_signal_ends_it_in_order_and_another_job_goes_on(self):
        self.train("--epochs", 1000)
        job = self.slurm.submit("job.sbatch", self.mine)
        # While another job waits in the queue, scancel signals each step twice.
        waiting = self.slurm.submit("job.sbatch", self.mine, f"--dependency=afternotok:{job}")
        self.await_progress(job)
        self.slurm.end(job)
        self.assert_completed(job)
        for rank in range(3):
            self.assertIn("drained", self.log(job, f"workers-{rank}"))
            self.assertIn("server_left", self.log(job, f"servers-{rank}"))
        self.slurm.run("scancel", waiting)
        again = self.slurm.submit("job.sbatch", self.mine)
        self.await_progress(again)
        self.assertIn('"resumes"', self.log(again, "scheduler-0"))
        self.slurm.end(again)
        self.assert_completed(again)

    def test_a_server_that_failed_fails_the_job(self):
        self.train("--epochs", 1000)
        job = self.slurm.submit("job.sbatch", self.mine)
        self.await_progress(job)
        subprocess.run(["pkill", "--oldest", "--signal=KILL", "--full",
                        f"^covey_server --tls {self.mine}/"], check=True)
        self.slurm.end(job)
        self.assertEqual("FAILED 1:0", self.slurm.await_end(job), self.output(job))
        self.assertIn("a server has failed", self.output(job))
        self.assertEqual(2, sum("server_left" in self.log(job, f"servers-{rank}")
                                for rank in range(3)))

    def test_servers_outlast_the_jobs_of_workers(self):
        self.train("--epochs", 1)
        servers = self.slurm.submit("servers.sbatch", self.mine)
        for ended in range(2):
            # The first one waits for the servers.
            job = self.slurm.submit("workers.sbatch", self.mine)
            self.assert_completed(job)
            folder = f"covey-{servers}-0/workers-{job}"
            result = self.result_of("".join(self.log(job, f"workers-{rank}", folder)
                                            for rank in range(2)))
            self.assertGreater(result["test_accuracy"], 0.7)
            self.assertEqual(ended + 1, result["groups"], "two workers make one more group")
        self.slurm.end(servers)
        self.assert_completed(servers)
        self.assertIn("server_left", self.log(servers, "servers-0"))


if __name__ == "__main__":
    report.main()
