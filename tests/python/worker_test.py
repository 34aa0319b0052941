# SPDX-License-Identifier: Apache-2.0
"""Workers in Python: collectives, the hybrid step, and the data source, in `covey run`."""

import json
import os
import pathlib
import sys

import covey
from tests import report
from tests.process import cluster

_TRAINING = pathlib.Path(__file__).with_name("training.py")


class WorkerTest(cluster.ProcessTest):
    def results(self, groups, workers, what):
        """Of all workers, by rank."""
        os.environ["PYTHONPATH"] = str(pathlib.Path(covey.__file__).parents[1])
        run = self.start_run(groups, workers, [sys.executable, _TRAINING, what])
        self.assertEqual(0, run.exit_code(240), run)
        lines = [line[line.index("{"):] for line in run.lines("stdout")
                 if '"rank"' in line and '"size"' in line]
        found = sorted((json.loads(line) for line in lines), key=lambda one: one["rank"])
        self.assertEqual(list(range(groups * workers)), [one["rank"] for one in found], run)
        return found

    def test_collectives(self):
        for result in self.results(1, 3, "collectives"):
            self.assertEqual({"sum": 6, "many": [3, 6], "sent": 1, "scattered": 3,
                              "gathered": [0, 1, 2]},
                             {name: result[name] for name in
                              ("sum", "many", "sent", "scattered", "gathered")})

    def test_collectives_of_other_types(self):
        for result in self.results(1, 3, "collectives"):
            typed = result["typed"]
            self.assertEqual(
                [[9.0, 60.0], [24, 6000], [4, 30], [2.0, 10.0], 3 * 2 ** 40 + 3, [0, 0, 1, 2],
                 "012", "from 2", [6, 6, result["rank"] + 1]], typed["results"])
            for why, refused in zip(
                    ["TypeError: array needs float32, float64, int32, int64, got B",
                     "TypeError: array needs float32, float64, int32, int64, got h",
                     "ValueError: op is 'mean'; use one of sum, product, min, max",
                     "ValueError: op is 'max' for a sequence of arrays",
                     "InvalidArgument: all-reduce of float64 in the format float16",
                     "InvalidArgument: array has 4 elements for 3 members",
                     "TypeError: array is read-only",
                     "TypeError: out has elements of another type",
                     "InvalidArgument: out has 3 elements and array 2",
                     "ValueError: out is not for a sequence"], typed["refused"], strict=True):
                self.assertTrue(refused.startswith(why), refused)

    def test_survivors_repeat_a_collective_with_the_same_input(self):
        os.environ["PYTHONPATH"] = str(pathlib.Path(covey.__file__).parents[1])
        run = self.start_run(1, 3, [sys.executable, _TRAINING, "survivors"])
        run.exit_code(240)  # not 0, because a worker has died
        found = [json.loads(line[line.index("{"):]) for line in run.lines("stdout")
                 if '"after"' in line]
        self.assertEqual(2, len(found), run)
        for result in found:
            self.assertEqual([6, 3], [result["before"], result["after"]])
            self.assertEqual([result["rank"] + 1] * 2, result["mine"])
            self.assertGreater(result["refused"], 0)

    def test_adasum_adds_what_is_orthogonal_and_averages_what_is_equal(self):
        for result in self.results(1, 4, "adasum"):
            self.assertEqual([12.0] * 4, result["apart"])
            self.assertEqual([6.0] * 2, result["alike"])
            self.assertEqual("combine is 'sum'; use one of mean, adasum", result["refused"])

    def test_trains_every_example_once(self):
        results = self.results(2, 2, "steps")
        self.assertEqual(200, sum(result["trained"] for result in results))
        self.assertEqual({2}, {result["groups"] for result in results})
        for result in results:
            self.assertEqual(200, result["finished"])
            self.assertGreater(result["weights"], 0)
            self.assertGreater(result["steps"], 0)

    def test_members_meet_at_the_end_of_each_pass(self):
        results = self.results(1, 2, "passes")
        self.assertEqual(300, sum(result["trained"] for result in results))
        self.assertEqual(results[0]["ends"], results[1]["ends"])
        self.assertEqual([[0, 100], [1, 200], [2, 300]],
                         [[number, count] for number, _, count in results[0]["ends"]])
        for result in results:
            self.assertEqual(3, result["pass"])
            self.assertIn("MeetAtEnd", result["refused"][0])
            self.assertIn("go_on, meet", result["refused"][1])

    def test_a_member_is_away_for_longer_than_the_deadline_of_a_step(self):
        results = self.results(1, 2, "away")
        for result in results:
            self.assertEqual({"count": 2, "size_now": 2, "refused": 3},
                             {name: result[name] for name in ("count", "size_now", "refused")})
        self.assertEqual("evaluation", results[0]["away"])
        self.assertEqual([], results[0]["away_in_the_end"])


if __name__ == "__main__":
    report.main()
