# SPDX-License-Identifier: Apache-2.0
"""`covey doctor`: each mistake is found by its line, with real processes."""

import json
import os
import signal

from tests import report
from tests.process import cluster

# Depend on the machine that runs the test.
_OF_MACHINE = ("clock", "cpu", "huge-pages", "memory", "namespaces", "open-files")


class CliDoctorTest(cluster.ProcessTest):

    def doctor(self, *words, before=()):
        run = self.run_to_end("covey doctor", [*before, cluster.COVEY, "doctor", "-o", "json", *words])
        found = json.loads("".join(run.lines("stdout")))
        self.assertEqual(1 if found["failures"] else 0, run.code, run)
        return found["findings"]

    def finds(self, check, level, remedy, *words, before=()):
        """Exactly one line is not ok, apart from those about this machine."""
        wrong = [finding for finding in self.doctor(*words, before=before)
                 if finding["level"] in ("warn", "fail")
                 and (finding["check"] == check or finding["check"] not in _OF_MACHINE)]
        self.assertEqual([(check, level)], [(each["check"], each["level"]) for each in wrong], wrong)
        self.assertIn(remedy, wrong[0]["remedy"])
        return wrong[0]["seen"]

    def test_of_this_machine(self):
        limited = ["sh", "-c", 'ulimit -n 512; exec "$0" "$@"']
        self.finds("open-files", "fail", "LimitNOFILE=", before=limited)
        self.finds("memory", "fail", "end other programs", "--memory", "100000GiB")
        self.finds("disk", "fail", "make the folder", os.path.join(self.folder, "none"))
        self.finds("disk", "fail", "free room", self.folder, "--disk", "100000GiB")
        roles = cluster.certificates(self)
        self.finds("certificates", "fail", "covey certificates show", "--certificates", self.folder)
        key = os.path.join(roles, "viewer", "node.key")
        os.chmod(key, 0o644)
        seen = self.finds("certificates", "fail", "covey certificates show", "--certificates",
                          os.path.join(roles, "viewer"))
        self.assertIn("chmod 600", seen)

    def test_of_reaching_a_scheduler(self):
        at = "--scheduler"
        self.finds("names", "fail", "DNS", at, "no-such-host.invalid:7070")
        self.finds("scheduler", "fail", "start the scheduler", at, "127.0.0.1:1")
        roles = cluster.certificates(self)
        viewer = ["--tls", os.path.join(roles, "viewer")]
        plain = cluster.Cluster(self)
        status = plain.status()
        data_port = cluster.ports(cluster.nodes(status, "SERVER")[0])[0]
        self.finds("scheduler", "fail", "its --port", at, f"127.0.0.1:{data_port}")
        self.finds("security", "fail", "leave --tls out", at, plain.address, *viewer)
        secured = cluster.Cluster(self, tls=roles)
        self.finds("security", "fail", "give --tls", at, secured.address)
        os.chmod(os.path.join(roles, "viewer", "node.key"), 0o644)
        self.finds("certificates", "fail", "show", at, secured.address, *viewer)

    def test_of_a_cluster(self):
        running = cluster.Cluster(self, servers=1)
        at = ["--scheduler", running.address]
        running.count()
        findings = self.doctor(*at)
        checks = {each["check"]: each for each in findings}
        self.assertEqual("ok", checks["data-ports"]["level"], findings)
        self.assertIn("job process-test", checks["scheduler"]["seen"])
        wrong = [each for each in self.doctor(*at, "--job", "other") if each["check"] == "job"]
        self.assertEqual(["fail"], [each["level"] for each in wrong])
        running.servers[0].signal(signal.SIGKILL)
        running.await_status(lambda now: not now["summary"]["healthy"], "a dead server")
        dead = [each for each in self.doctor(*at) if "is dead" in each["seen"]]
        self.assertEqual(["start another process in its place"], [each["remedy"] for each in dead])


if __name__ == "__main__":
    report.main()
