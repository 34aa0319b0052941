# SPDX-License-Identifier: Apache-2.0
"""A job with certificates: it trains, and whoever does not belong to it is told why."""

import os

from tests import report
from tests.process import cluster

_TRAINING = [cluster.FASHION_MNIST, "--contract", "bsp", "--epochs", 1, "--hidden", 32]


class SecurityTest(cluster.ProcessTest):
    def path(self, name):
        return os.path.join(self.folder, name)

    def certificates(self, *words):
        run = self.run_to_end("covey certificates", [cluster.COVEY, "certificates", *words])
        self.assertEqual(0, run.code, run)

    def issue(self, name, *words, job=cluster.JOB):
        """The folder of a certificate, or with --every-role that of all."""
        self.certificates("issue", self.path("ca"), "--job", job, "--out", self.path(name), *words)
        return self.path(name)

    def secured(self, **options):
        """A cluster of one server, and the folder with the certificates of its roles."""
        tls = cluster.certificates(self)
        return cluster.Cluster(self, groups=0, tls=tls, **options), tls

    def command(self, running, *words, tls=None):
        return self.run_to_end(words[0], [
            cluster.COVEY, *words, "--scheduler", running.address,
            *(["--tls", tls] if tls else [])])

    def test_trains_with_certificates(self):
        result = self.result_of(2, 1, _TRAINING, [
            "--servers", 2, "--tls", cluster.certificates(self, job="run")])
        self.assertGreater(result["test_accuracy"], 0.8)

    def test_everybody_does_what_the_certificate_allows(self):
        running, tls = self.secured()
        for role in ("viewer", "admin", "worker", "client"):
            self.assertEqual(0, self.command(running, "status", tls=f"{tls}/{role}").code)
        refused = self.command(running, "scale", "--servers", "2", tls=f"{tls}/viewer")
        self.assertEqual(1, refused.code)
        self.assertIn("viewer of job process-test may not call Scale: allowed are admins",
                      refused.lines()[-1])
        self.assertEqual(0, self.command(running, "scale", "--servers", "1",
                                         tls=f"{tls}/admin").code)
        running.scheduler.await_line(r"audit.*viewer of job process-test.*Scale.*allowed are admins")
        running.scheduler.await_line(r"audit.*\badmin of job process-test.*Scale.*allowed")

    def test_the_clients_of_a_worker_do_not_ask_for_its_rank(self):
        running, _ = self.secured()
        worker = self.issue("worker-3", "--role", "worker", "--rank", "3")
        run = self.run_to_end("counter", [cluster.COUNTER, running.address, cluster.JOB, worker])
        self.assertEqual(0, run.code, run)
        clients = cluster.nodes(running.status(), "CLIENT", state="LEFT")
        self.assertEqual([0], [client["rank"] for client in clients])

    def test_strangers_are_told_what_is_wrong(self):
        running, tls = self.secured()
        without = self.command(running, "status")
        self.assertEqual(3, without.code)
        self.assertIn("do both or neither have --tls?", without.lines()[-1])
        self.certificates("init", self.path("other-ca"))
        self.certificates("issue", self.path("other-ca"), "--role", "admin", "--every-job",
                          "--out", self.path("stranger"))
        stranger = self.command(running, "status", tls=self.path("stranger"))
        self.assertEqual(3, stranger.code)
        self.assertIn("both must be of one job and trust the same roots", stranger.lines()[-1])
        other_job = self.command(running, "status", tls=self.issue("other", "--role", "viewer",
                                                                   job="other"))
        self.assertEqual(3, other_job.code)
        self.assertIn("viewer of job other; both must be of one job", other_job.lines()[-1])
        wrong_role = self.run_to_end("server", [
            cluster.SERVER, "--scheduler", running.address, "--job", cluster.JOB,
            "--tls", f"{tls}/worker"])
        self.assertEqual(2, wrong_role.code)
        self.assertIn("certificates issue CA-DIR --role server", wrong_role.lines()[-1])
        plain = self.run_to_end("server", [
            cluster.SERVER, "--scheduler", running.address, "--job", cluster.JOB,
            "--join-deadline", "2s"])
        self.assertEqual(3, plain.code)
        self.assertIn("that --tls is given to both or to neither", plain.lines()[-1])
        os.chmod(f"{tls}/viewer/node.key", 0o644)
        readable = self.command(running, "status", tls=f"{tls}/viewer")
        self.assertEqual(1, readable.code)
        self.assertIn("chmod", readable.lines()[-1])
        self.assertTrue(running.scheduler.running())

    def test_new_roots_while_it_runs(self):
        running, tls = self.secured()
        roles = [f"{tls}/{role}" for role in sorted(os.listdir(tls))]
        self.assertEqual(1, running.count())
        for number, step in enumerate(("add", "use", "remove"), 2):
            self.certificates("rotate", self.path("ca"), "--step", step, *roles)
            # The scheduler looks at its folder each second.
            running.await_status(lambda status: True, f"a status after --step {step}")
            self.assertEqual(number, running.count())
        self.assertTrue(running.servers[0].running())

    def test_a_certificate_that_is_taken_back(self):
        running, tls = self.secured(servers=2)
        self.assertEqual(1, running.count())
        lost = running.servers[1]
        self.certificates("revoke", self.path("ca"),
                          f"spiffe://covey/job/{cluster.JOB}/role/server", f"{tls}/scheduler")
        # Both servers have this certificate. They hear of no other node any more.
        running.await_status(lambda status: not cluster.nodes(status, "SERVER"), "no server",
                             seconds=10)
        self.assertEqual(1, lost.exit_code())
        self.assertIn("was revoked", lost.lines()[-1])
        # A new one lets a server in.
        self.issue("roles/server", "--role", "server")
        running.start_server(0)
        running.await_status(lambda status: len(cluster.nodes(status, "SERVER")) == 1, "a server")

    def test_nobody_listens_for_all_by_mistake(self):
        for program, setting in ((cluster.SCHEDULER, "--host"), (cluster.SERVER, "--data-host")):
            more = ["--scheduler", "127.0.0.1:1"] if program == cluster.SERVER else []
            refused = self.run_to_end("exposed", [program, setting, "0.0.0.0", *more])
            self.assertEqual(2, refused.code)
            self.assertIn("Give --tls DIR", refused.lines()[-1])
            both = self.run_to_end("both", [program, "--insecure", "--tls", "x", *more])
            self.assertEqual(2, both.code)
        running = cluster.Cluster(self, groups=0, scheduler_options=["--host", "0.0.0.0",
                                                                     "--insecure"])
        self.assertTrue(any("everybody who reaches this address" in line
                            for line in running.scheduler.lines()))
        shown = self.command(running, "status")
        self.assertIn("INSECURE", shown.lines("stdout")[1])


if __name__ == "__main__":
    report.main()
