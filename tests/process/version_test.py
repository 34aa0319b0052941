# SPDX-License-Identifier: Apache-2.0
"""Every program names the one version of the project when asked for it."""

import os

from tests import report
from tests.process import cluster

_PROGRAMS = [cluster.COVEY, cluster.SCHEDULER, cluster.SERVER, cluster.FASHION_MNIST,
             cluster.SYNTHETIC, cluster.ALL_REDUCE, cluster.RING_WORKER]


class VersionTest(cluster.ProcessTest):
    def version_of(self, program, *command):
        run = self.run_to_end(os.path.basename(program), [program, *command, "--version"])
        self.assertEqual((0, []), (run.code, run.lines("stderr")), run)
        [line] = run.lines("stdout")
        name, version = line.rsplit(" ", 1)
        return name, version

    def test_every_program(self):
        _, expected = self.version_of(cluster.COVEY)
        self.assertRegex(expected, r"^\d+\.\d+\.\d+$")
        for program in _PROGRAMS:
            with self.subTest(program):
                self.assertEqual((os.path.basename(program), expected), self.version_of(program))

    def test_a_command_of_covey(self):
        self.assertEqual("covey status", self.version_of(cluster.COVEY, "status")[0])


if __name__ == "__main__":
    report.main()
