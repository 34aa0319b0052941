# SPDX-License-Identifier: Apache-2.0
"""`covey status` and `covey tables` with a real cluster, and without one."""

import json
import signal

from tests import report
from tests.process import cluster


class CliStatusTest(cluster.ProcessTest):

    def covey(self, *arguments, environment=None):
        return self.run_to_end("covey", [cluster.COVEY, *arguments], environment)

    def refused(self, code, message, *arguments):
        run = self.covey(*arguments)
        self.assertEqual(code, run.code, run)
        self.assertEqual(1, len(run.lines()), run)
        self.assertIn(message, run.lines("stderr")[0])

    def test_wrong_usage(self):
        self.refused(2, "did you mean status?", "stats")
        self.refused(2, "did you mean --scheduler?", "status", "--schedule", "x")
        self.refused(2, "no scheduler given", "tables")
        self.refused(2, "write HOST:PORT", "status", "--scheduler", "localhost")
        self.refused(2, "choose table or json", "status", "-o", "yaml")
        self.assertEqual(2, self.covey().code)

    def test_help(self):
        for arguments in [["--help"], ["status", "--help"], ["run", "--help"]]:
            run = self.covey(*arguments)
            self.assertEqual(0, run.code, run)
            self.assertIn("Exit code" if arguments[0] != "run" else "PROGRAM", str(run))

    def test_nobody_answers(self):
        # Port 1 is reserved; nothing listens there.
        self.refused(3, "no scheduler answers at 127.0.0.1:1", "status", "--scheduler", "127.0.0.1:1")
        self.refused(3, "no scheduler answers at", "tables", "--scheduler", "127.0.0.1:1")

    def changes_a_contract(self, table, asked):
        """Changes the contract of a table in use by hand; refused changes have no effect."""
        change = ["tables", "set-contract", table]
        changed = self.covey(*change, "buffered:2,cut=9", environment=asked)
        self.assertEqual(0, changed.code, changed)
        changed.await_line(f"^{table} .* buffered:2,cut=9 ")
        again = self.covey(*change, "buffered:2,cut=9", "-o", "json", environment=asked)
        [described] = json.loads("".join(again.lines()))["tables"]
        self.assertEqual("BUFFERED", described["contract"]["kind"])
        events = self.covey("status", "--events", environment=asked)
        events.await_line(f"'{table}' .* goes from .* to buffered:2,cut=9: asked by hand")
        for code, reason, words in [
                (2, "contract 'weekly' is not known", ["weekly"]),
                (2, "write set-contract NAME CONTRACT", []),
                (1, "cannot go from buffered:2,cut=9 to local:4", ["local:4"]),
                (1, "no group is active", ["bsp"]),
        ]:
            run = self.covey(*change, *words, environment=asked)
            self.assertEqual(code, run.code, run)
            self.assertIn(reason, run.lines("stderr")[0])
        missing = self.covey("tables", "set-contract", "none", "async", environment=asked)
        self.assertEqual(1, missing.code, missing)
        self.assertIn("no such table", missing.lines("stderr")[0])

    def quarantines_a_producer(self, node, asked):
        """By hand: it is shown, and released."""
        done = self.covey("quarantine", node, "--reason", "wild gradients", environment=asked)
        self.assertEqual(0, done.code, done)
        done.await_line(f"^{node} is quarantined since epoch .*, without effect: no table has a gate")
        status = self.covey("status", environment=asked)
        self.assertEqual(0, status.code, status)
        status.await_line(f"^  {node} is quarantined since epoch .*: wild gradients, asked by hand; ")
        again = self.covey("quarantine", node, "-o", "json", environment=asked)
        described = json.loads("".join(again.lines()))
        self.assertEqual("wild gradients, asked by hand", described["reason"])
        for code, reason, words in [
                (2, "name one producer", []),
                (2, "a release has no reason", [node, "--release", "--reason", "x"]),
                (1, "no active group and no live node has this name", ["group-9"]),
                (1, f"it is not quarantined; these are: {node}", ["group-9", "--release"]),
        ]:
            run = self.covey("quarantine", *words, environment=asked)
            self.assertEqual(code, run.code, run)
            self.assertIn(reason, run.lines("stderr")[0])
        released = self.covey("quarantine", node, "--release", environment=asked)
        self.assertEqual(0, released.code, released)
        released.await_line(f"^{node} is released since epoch ")
        status = self.covey("status", "-o", "json", environment=asked)
        self.assertEqual([], json.loads("".join(status.lines()))["summary"]["quarantined"])

    def test_a_cluster_from_healthy_to_unhealthy(self):
        running = cluster.Cluster(self, servers=1)
        asked = {"COVEY_SCHEDULER": running.address}

        status = self.covey("status", environment=asked)
        self.assertEqual(0, status.code, status)
        status.await_line(r"^job process-test, epoch \d+, up .*: healthy$")
        status.await_line(r"waiting for .*worker")
        status.await_line(r"^server-0 +alive")
        self.assertEqual(["no tables yet"], self.covey("tables", environment=asked).lines())

        self.assertEqual(1, running.count())
        tables = self.covey("tables", "-o", "json", environment=asked)
        self.assertEqual(0, tables.code, tables)
        names = [table["spec"]["name"] for table in json.loads("".join(tables.lines()))["tables"]]
        self.assertEqual(1, len(names))
        self.covey("tables", environment=asked).await_line(f"^{names[0]} ")
        self.covey("status", "--events", environment=asked).await_line(f"'{names[0]}' created")

        self.changes_a_contract(names[0], asked)
        self.quarantines_a_producer("server-0", asked)

        running.servers[0].signal(signal.SIGKILL)
        running.await_status(lambda now: not now["summary"]["healthy"], "a dead server")
        status = self.covey("status", environment=asked)
        self.assertEqual(1, status.code, status)
        status.await_line(r"^  server-0 is dead: ")


if __name__ == "__main__":
    report.main()
