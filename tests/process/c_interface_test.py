# SPDX-License-Identifier: Apache-2.0
"""Programs in C that use libcovey.so: the smallest example, against a cluster of real processes."""


from tests import report
from tests.process import cluster, program

_COUNTER = program.built("client/c/examples/counter")
_CONJUGATE_GRADIENT = program.built("client/c/examples/conjugate_gradient")


class CInterfaceTest(cluster.ProcessTest):
    def test_counts_across_processes(self):
        run = self.start_run(1, 3, [_COUNTER])
        self.assertEqual(0, run.exit_code(), run)
        counts = {line for line in run.lines("stdout") if "counted" in line}
        self.assertIn("counted 3 times", " ".join(counts), run)

    def test_computes_with_vectors_on_the_servers(self):
        run = self.start_run(1, 1, [_CONJUGATE_GRADIENT], ["--servers", 2])
        self.assertEqual(0, run.exit_code(), run)
        said = " ".join(run.lines("stdout"))
        self.assertRegex(said, r"of 4 vectors: [1-9]\d? steps, largest error below 1e-3")
        self.assertIn("largest: 7.0, in place 6 of 7", said)

    def test_says_what_is_wrong_in_one_sentence(self):
        alone = self.run_to_end("counter", [_COUNTER], environment={"COVEY_SCHEDULER": "nowhere"})
        self.assertEqual(1, alone.code)
        self.assertEqual(["counter: scheduler is 'nowhere'; give HOST:PORT, separate several by "
                          "commas (or set COVEY_SCHEDULER)"], alone.lines("stderr"))


if __name__ == "__main__":
    report.main()
