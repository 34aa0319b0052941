# SPDX-License-Identifier: Apache-2.0
"""Tests whose work is done by programs in Python, one per worker, in `covey run`."""

import json
import os
import pathlib

import covey
from tests.process import cluster
from tests.python import interpreter


class WorkerProgramsTest(cluster.ProcessTest):
    def setUp(self):
        super().setUp()
        os.environ["PYTHONPATH"] = str(pathlib.Path(covey.__file__).parents[1])

    def run_programs(self, groups, workers, script, name):
        """What each worker prints: the line of JSON that begins with its rank, by rank.

        The script gets the name, the number of workers, and a file that they can meet at.
        """
        run = self.start_run(groups, workers, [
            interpreter.PYTHON, script, name, groups * workers, os.path.join(self.folder, name)])
        self.assertEqual(0, run.exit_code(240), run)
        found = [json.loads(line[line.index('{"rank"'):]) for line in run.lines("stdout")
                 if '{"rank"' in line]
        by_rank = {int(result["rank"]): result for result in found}
        self.assertEqual(groups * workers, len(by_rank), run)
        return [by_rank[rank] for rank in sorted(by_rank)]
