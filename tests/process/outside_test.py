# SPDX-License-Identifier: Apache-2.0
"""Programs in a user's own folder, which uses only //:covey_client and //:covey_worker, run."""


from tests import report
from tests.process import cluster, program

_MINE = program.built("tests/outside/mine")
_IN_GROUPS = program.built("tests/outside/mine_in_groups")


class OutsideTest(cluster.ProcessTest):
    def test_a_program_that_reads_and_writes_parameters(self):
        self.assertEqual(1, self.result_of(1, 1, [_MINE])["counted"])

    def test_a_program_of_workers_in_groups(self):
        result = self.result_of(1, 2, [_IN_GROUPS])
        self.assertEqual((2, 1), (result["sum"], result["value"]))


if __name__ == "__main__":
    report.main()
