# SPDX-License-Identifier: Apache-2.0
"""covey.torch.DiLoCo and LocalSGD: rounds of local steps with optimizers of PyTorch."""

import pathlib

from tests import report
from tests.python import interpreter, worker_programs

_PROGRAMS = pathlib.Path(__file__).with_name("diloco_programs.py")


@interpreter.needs("torch")
class DiLoCoTest(worker_programs.WorkerProgramsTest):
    def results(self, groups, workers, name):
        return self.run_programs(groups, workers, _PROGRAMS, name)

    def test_one_worker_is_plain_pytorch(self):
        for name in ("sgd", "adam"):
            with self.subTest(name):
                result, = self.results(1, 1, name)
                self.assertLess(result["distance"], 1e-6)
                self.assertEqual(result["rates"][0], result["rates"][1])
                self.assertEqual((32, 0.0), (result["steps"], result["moved"]))
                if name == "adam":
                    self.assertEqual(4, result["state"])

    def check_like_one_process(self, name):
        results = self.results(2, 2, name)
        for result in results:
            self.assertLess(result["distance"], 1e-5)
            self.assertLess(result["losses"][1], 0.5 * result["losses"][0])
            self.assertEqual(results[0]["weights"], result["weights"])
        self.assertEqual(2, len({result["group"] for result in results}))

    def test_rounds_are_as_in_one_process(self):
        self.check_like_one_process("together")

    def test_rounds_with_a_quorum_are_as_in_one_process(self):
        self.check_like_one_process("quorum")

    def test_a_pass_ends_with_a_round(self):
        for workers in (1, 2):
            results = self.results(1, workers, "loader")
            for number in range(2):
                seen = [example for result in results for example in result["passes"][number]]
                self.assertEqual(list(range(96)), sorted(seen))
            self.assertEqual(results[0]["weights"], results[-1]["weights"])
            self.assertEqual({0}, {result["unsynced"] for result in results})

    def test_examples_of_a_round_that_died_are_trained_by_others(self):
        survivor, dead = self.results(1, 2, "loader, death")
        self.assertNotIn("passes", dead)
        for number in range(2):
            self.assertEqual(list(range(96)), sorted(survivor["passes"][number]), f"pass {number}")

    def test_goes_on_without_a_member_that_dies(self):
        survivor, dead = self.results(1, 2, "leaves")
        self.assertNotIn("losses", dead)
        self.assertLess(survivor["losses"][1], survivor["losses"][0])

    def test_says_what_it_does_not_support(self):
        said, = self.results(1, 1, "mistakes")
        for about, text in (("sync_every", "1 or more"), ("contract", "sync_every"),
                            ("quorum", "'async'"), ("samples", "samples_per_step"),
                            ("group", "added"), ("outer", "use DiLoCo")):
            self.assertIn(text, said[about], about)


if __name__ == "__main__":
    report.main()
