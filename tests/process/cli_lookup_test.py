# SPDX-License-Identifier: Apache-2.0
"""`covey lookup` with a real cluster, whose rows an example has trained."""

import json
import os
import subprocess

from tests import report
from tests.process import cluster, program

_FACTORIZATION = program.built("worker/examples/factorization/factorization")
_LARGE = 2**64 - 1


class LookupTest(cluster.ProcessTest):
    def setUp(self):
        super().setUp()
        self.cluster = cluster.Cluster(self, servers=2)
        # The first update by Adagrad is as large as the rate: -0.5 times the gradient's sign.
        path = self.file("samples", f"1 3:1\n0 {_LARGE}:1\n")
        run = self.run_to_end(
            "factorization",
            [_FACTORIZATION, "--data", "libsvm", "--train-file", path, "--test-file", path,
             "--model", "linear", "--learning-rate", 0.5, "--l2", 0],
            self.cluster.environment())
        self.assertEqual(0, run.code, run)

    def file(self, name, content):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="ascii") as file:
            file.write(content)
        return path

    def lookup(self, *options):
        return self.run_to_end("covey lookup", [
            cluster.COVEY, "lookup", "--scheduler", self.cluster.address, "--job", cluster.JOB, *options])

    def rows(self, *options):
        run = self.lookup("-o", "json", *options)
        self.assertEqual(0, run.code, run)
        self.answer = json.loads("\n".join(run.lines("stdout")))
        return [(row["key"], row["values"]) for row in self.answer["rows"]]

    def assert_refused(self, code, message, *options):
        run = self.lookup(*options)
        self.assertEqual(code, run.code, run)
        self.assertIn(message, run.lines("stderr")[-1])

    def test_shows_rows_in_the_order_of_the_keys(self):
        weights = "factorization/weights"
        expected = [("3", [0.5]), (str(_LARGE), [-0.5]), ("4", [0.0]), ("3", [0.5])]
        rows = self.rows(weights, "0x3", f"0x{_LARGE:x}", 4, 3)
        self.assertEqual([key for key, _ in expected], [key for key, _ in rows])
        for (_, values), (_, found) in zip(expected, rows):
            self.assertAlmostEqual(values[0], found[0], places=5)
        self.assertEqual((weights, 1), (self.answer["table"], self.answer["width"]))
        # That was no update.
        self.assertEqual(rows[2:3], self.rows(weights, 4))

    def test_takes_keys_from_a_file_and_the_input(self):
        path = self.file("keys", "3 # the first\n\n4\n")
        rows = self.rows("factorization/weights", _LARGE, "--keys-file", path)
        self.assertEqual([str(_LARGE), "3", "4"], [key for key, _ in rows])
        run = subprocess.run(
            [cluster.COVEY, "lookup", "--scheduler", self.cluster.address, "--job", cluster.JOB, "-o", "json",
             "--keys-file", "-", "factorization/weights"],
            input="4 0x3\n", capture_output=True, text=True, timeout=program.PATIENCE_SECONDS, check=True)
        self.assertEqual(["4", "3"], [row["key"] for row in json.loads(run.stdout)["rows"]])

    def test_shows_a_table_to_people(self):
        run = self.lookup("factorization/weights", 3)
        self.assertEqual(0, run.code, run)
        lines = run.lines("stdout")
        self.assertRegex(lines[0], r"^ *KEY +0")
        self.assertRegex(lines[1], r"^ *3 +0\.5")
        self.assertIn("a row that no push has made yet shows its first values", lines[2])

    def test_says_what_is_wrong(self):
        weights = "factorization/weights"
        self.assert_refused(2, "'three' is no key", weights, "three")
        self.assert_refused(2, "no table is named")
        self.assert_refused(2, "no key is given", weights)
        self.assert_refused(2, "line 2: 'x' is no key", weights, "--keys-file", self.file("k", "1\nx"))
        self.assert_refused(1, "no table 'other'", "other", 1)
        self.assert_refused(1, "is dense", "factorization/loss", 1)
        # No update comes, so rows are never so fresh.
        self.assert_refused(1, "", weights, 1, "--max-age", "1ms", "--timeout", "500ms")


if __name__ == "__main__":
    report.main()
