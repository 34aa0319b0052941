# SPDX-License-Identifier: Apache-2.0
"""`covey certificates`: folders that TLS accepts, and an answer to every wrong step."""

import json
import os
import shutil
import ssl

from tests import report
from tests.process import cluster


def _context(folder, protocol):
    context = ssl.SSLContext(protocol)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(os.path.join(folder, "node.crt"), os.path.join(folder, "node.key"))
    context.load_verify_locations(os.path.join(folder, "ca.crt"))
    return context


def meet(server, client):
    """The URIs that both ends of a TLS connection see of the other, by their folders; raises ssl.SSLError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [_context(client, ssl.PROTOCOL_TLS_CLIENT).wrap_bio(to_client, to_server),
            _context(server, ssl.PROTOCOL_TLS_SERVER).wrap_bio(to_server, to_client, server_side=True)]
    waiting = list(ends)
    while waiting:
        for end in list(waiting):
            try:
                end.do_handshake()
                waiting.remove(end)
            except ssl.SSLWantReadError:
                pass
    return [dict(end.getpeercert()["subjectAltName"])["URI"] for end in ends]


class CliCertificatesTest(cluster.ProcessTest):
    def setUp(self):
        super().setUp()
        self.ca = self.path("ca")

    def path(self, name):
        return os.path.join(self.folder, name)

    def covey(self, code, *words):
        run = self.run_to_end("covey certificates", [cluster.COVEY, "certificates", *words])
        self.assertEqual(code, run.code, run)
        return run

    def json(self, *words, code=0):
        return json.loads("".join(self.covey(code, *words, "-o", "json").lines("stdout")))

    def refused(self, code, message, *words):
        run = self.covey(code, *words)
        [line] = run.lines()
        self.assertIn(message, line)

    def issue(self, role, name, *words):
        return self.json("issue", self.ca, "--role", role, "--job", "mnist", "--out", self.path(name),
                         *words)

    def rotate(self, step, *names):
        return self.json("rotate", self.ca, "--step", step, *map(self.path, names))

    def test_folders_that_tls_accepts(self):
        made = self.json("init", self.ca, "--trust-domain", "training.example.org")
        self.assertEqual(["authority", "one root", []], [made["kind"], made["stage"], made["problems"]])
        self.issue("scheduler", "scheduler")
        issued = self.issue("worker", "worker", "--rank", "3")
        self.assertEqual({"uri": "spiffe://training.example.org/job/mnist/role/worker/rank/3",
                          "trust_domain": "training.example.org", "role": "worker", "job": "mnist",
                          "rank": 3}, issued["identity"])
        self.assertEqual(["spiffe://training.example.org/job/mnist/role/scheduler",
                          issued["identity"]["uri"]],
                         meet(self.path("scheduler"), self.path("worker")))
        with self.assertRaisesRegex(ssl.SSLError, "unsuitable certificate purpose"):
            meet(self.path("worker"), self.path("worker"))
        # One of another authority, with the same names.
        self.ca = self.path("other")
        self.covey(0, "init", self.ca, "--trust-domain", "training.example.org")
        self.issue("worker", "stranger", "--rank", "3")
        with self.assertRaises(ssl.SSLError):
            meet(self.path("scheduler"), self.path("stranger"))

    def test_rotates(self):
        self.covey(0, "init", self.ca)
        for role in ("scheduler", "worker"):
            self.issue(role, role)
        serials = [self.json("show", self.ca)["roots"][0]["serial"]]
        for step in ("add", "use", "remove"):
            # The worker gets its folder later, and both understand each other meanwhile.
            for name in ("scheduler", "worker"):
                after = self.rotate(step, name)
                meet(self.path("scheduler"), self.path("worker"))
                meet(self.path("scheduler"), self.path("worker"))
                if step == "use" and name == "scheduler":
                    self.refused(1, "the old root vouches for 1 certificate in use, that of worker of job "
                                 "mnist", "rotate", self.ca, "--step", "remove")
            serials.append([root["serial"] for root in after["roots"]])
        old, (same, new), (first, second), [last] = serials
        self.assertEqual([old, new, old, new], [same, first, second, last])
        self.assertEqual(["one root", ""], [after["stage"], after["next"]])
        self.assertEqual({"scheduler", "worker"},
                         {entry["identity"]["role"] for entry in after["issued"]})
        self.assertEqual({new}, {entry["root"] for entry in after["issued"]})

    def test_takes_certificates_back(self):
        self.covey(0, "init", self.ca)
        self.issue("scheduler", "scheduler")
        worker, other = (self.issue("worker", name) for name in ("worker", "other"))
        [taken] = self.json("revoke", self.ca, worker["serial"])
        self.assertEqual((worker["serial"], worker["identity"]), (taken["serial"], taken["identity"]))
        self.assertEqual([], open(self.path("scheduler/revoked"), encoding="ascii").readlines())
        again = self.covey(0, "revoke", self.ca, worker["serial"])
        self.assertIn("revoked already", str(again))
        # One that was renewed since is still valid.
        first = self.issue("client", "client")
        self.issue("client", "client")
        self.assertEqual(["client"], [entry["identity"]["role"] for entry in
                                      self.json("show", self.ca)["issued"]
                                      if entry["identity"]["role"] == "client"])
        [taken] = self.json("revoke", self.ca, first["serial"])
        self.assertEqual(first["serial"], taken["serial"])
        # The other one, by its identity; the scheduler's folder hears of all.
        [taken] = self.json("revoke", self.ca, other["identity"]["uri"], self.path("scheduler"))
        self.assertEqual(other["serial"], taken["serial"])
        with open(self.path("scheduler/revoked"), encoding="ascii") as file:
            self.assertEqual([worker["serial"], first["serial"], other["serial"]],
                             [line.split()[0] for line in file])
        self.assertFalse(os.path.exists(self.path("worker/revoked")))
        self.refused(1, "no valid certificate has the serial or the URI 'x'", "revoke", self.ca, "x")
        self.refused(2, "which certificate?", "revoke", self.ca)

    def test_shows_what_is_wrong(self):
        self.covey(0, "init", self.ca)
        self.issue("viewer", "me")
        shown = self.json("show", self.path("me"))
        self.assertEqual(("node", "viewer", []),
                         (shown["kind"], shown["identity"]["role"], shown["problems"]))
        # Of a person for 30 days, and of a process for 7.
        self.assertLess(abs(shown["seconds_left"] - 30 * 86400), 3600)
        self.assertIn("left: 29 d 23 h", str(self.covey(0, "show", self.path("me"))))
        self.assertIn("viewer of job mnist", str(self.covey(0, "show", self.ca)))
        key = self.path("me/node.key")
        os.chmod(key, 0o644)
        self.assertIn(f"chmod 600 {key}", str(self.covey(1, "show", self.path("me"))))
        os.chmod(key, 0o600)
        self.issue("client", "other")
        shutil.copyfile(self.path("other/node.key"), key)
        [problem] = self.json("show", self.path("me"), code=1)["problems"]
        self.assertIn("it is not the key of the certificate in node.crt", problem)
        os.remove(self.path("me/ca.crt"))
        self.assertEqual(2, len(self.json("show", self.path("me"), code=1)["problems"]))

    def test_keeps_secrets(self):
        self.covey(0, "init", self.ca)
        self.issue("client", "node")
        for path, mode in {"ca": 0o700, "node": 0o700, "ca/ca.key": 0o600, "node/node.key": 0o600}.items():
            self.assertEqual(mode, os.stat(self.path(path)).st_mode & 0o777, path)
        self.assertEqual(["ca", "node"], sorted(os.listdir(self.folder)))

    def test_wrong_usage(self):
        out = ["--out", self.path("x")]
        issue = ["issue", self.ca, *out, "--role"]
        worker = [*issue, "worker", "--job", "mnist"]
        for message, words in [
                ("what is to be done? write init DIR", []),
                ("nothing named 'make'; write init DIR", ["make", self.ca]),
                ("init takes one folder, and 0 are given", ["init"]),
                ("show takes one folder, and 2 are given", ["show", self.ca, self.ca]),
                ("init takes no --role; only issue does", ["init", self.ca, "--role", "worker"]),
                ("the trust domain 'A B'", ["init", self.ca, "--trust-domain", "A B"]),
                ("--days is 0; give 1 to 3650", ["init", self.ca, "--days", "0"]),
                ("for whom? pass --role", ["issue", self.ca]),
                ('"wroker" is no role; did you mean worker?', ["issue", self.ca, "--role", "wroker"]),
                ("for which job? pass --job JOB;", ["issue", self.ca, "--role", "worker"]),
                ("or --every-job", ["issue", self.ca, "--role", "viewer"]),
                ("where to? pass --out NODE-DIR", ["issue", self.ca, *worker[4:]]),
                ("pass --job or --every-job, and not both", [*worker, "--every-job"]),
                ("--days is 91; give 1 to 90", [*worker, "--days", "91"]),
                ("\"-1\" is not a whole number", [*worker, "--rank=-1"]),
                ("the job 'a/b' cannot stand in a certificate", [*issue, "worker", "--job", "a/b"]),
                ("the role client has no ranks", [*issue, "client", "--job", "a", "--rank", "1"]),
                ("a server belongs to one job", [*issue, "server", "--every-job"]),
                ("which step? pass --step add", ["rotate", self.ca]),
                ('"swap" is no step; write add, use or remove', ["rotate", self.ca, "--step", "swap"]),
                ("only --step remove takes --force", ["rotate", self.ca, "--step", "add", "--force"]),
        ]:
            with self.subTest(words):
                self.refused(2, message, *words)
        self.assertEqual([], os.listdir(self.folder))

    def test_a_wrong_step_is_answered_with_the_right_one(self):
        worker = ["issue", self.ca, "--role", "worker", "--job", "mnist", "--out", self.path("node")]
        self.refused(1, f"make one with: covey certificates init {self.ca}", *worker)
        self.refused(1, "covey certificates init DIR", "show", self.ca)
        self.covey(0, "init", self.ca)
        self.refused(1, f"covey certificates rotate {self.ca} --step add", "init", self.ca)
        self.refused(1, "holds ca.key", *worker[:-1], self.ca)
        self.refused(1, "choose a folder elsewhere", *worker[:-1], self.path("ca/node"))
        self.covey(0, *worker)
        self.covey(0, *worker)
        self.refused(1, "holds the certificate of worker of job mnist", *worker, "--rank", "1")
        self.refused(1, "--step add", "rotate", self.ca, "--step", "use")
        self.rotate("add", "node")
        self.refused(1, "--step use", "rotate", self.ca, "--step", "remove")
        self.rotate("use")
        self.refused(1, "--step remove", "rotate", self.ca, "--step", "add")
        self.refused(1, "the step is done, but", "rotate", self.ca, "--step", "use", self.path("none"))
        self.covey(0, "rotate", self.ca, "--step", "remove", "--force")
        # The root is valid for less than the certificate would be.
        self.covey(0, "init", self.path("short"), "--days", "1")
        self.refused(1, f"covey certificates rotate {self.path('short')} --step add",
                     "issue", self.path("short"), *worker[2:])


if __name__ == "__main__":
    report.main()
