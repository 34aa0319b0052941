# SPDX-License-Identifier: Apache-2.0
"""covey.torch: the optimizer, the loader, the hook and the backend, in `covey run`."""

import json
import os
import pathlib

from tests import report
from tests.python import interpreter, worker_programs

_PROGRAMS = pathlib.Path(__file__).with_name("torch_programs.py")


@interpreter.needs("torch")
class TorchTest(worker_programs.WorkerProgramsTest):
    def results(self, groups, workers, name):
        """Of all workers."""
        return self.run_programs(groups, workers, _PROGRAMS, name)

    def check_like_one_process(self, kind):
        results = self.results(1, 2, kind)
        # Both members begin with the model of one of them; each has drawn its own.
        self.assertEqual(1, len(results[0]["began_with"]))
        self.assertEqual(results[0]["began_with"], results[1]["began_with"])
        for result in results:
            self.assertLess(result["losses"][-1], 0.5 * result["losses"][0])
            self.assertTrue(result["overlaps"])
            for loss, expected in zip(result["losses"], result["expected"]):
                # Two sums of halves are rounded in another order than one sum.
                self.assertAlmostEqual(loss, expected, delta=1e-4 * abs(expected) + 1e-6)
        return results

    def test_sgd_is_like_one_process(self):
        self.check_like_one_process("sgd")

    def test_adam_is_like_one_process(self):
        self.check_like_one_process("adam")

    def test_adamw_is_like_one_process(self):
        self.check_like_one_process("adamw")

    def test_clipping_is_like_in_one_process(self):
        for result in self.check_like_one_process("clipped"):
            self.assertEqual(30, len(result["norms"]))
            self.assertLess(5, sum(norm > 0.5 for norm in result["norms"]))
            for norm, expected in zip(result["norms"], result["expected_norms"]):
                self.assertAlmostEqual(norm, expected, delta=1e-3 * expected + 1e-6)

    def test_optimizers_that_servers_do_not_have_are_like_in_one_process(self):
        for kind in ("adadelta", "rmsprop", "amsgrad"):
            self.check_like_one_process(kind)
        for result in self.check_like_one_process("rmsprop_clipped"):
            self.assertLess(5, sum(norm > 0.5 for norm in result["norms"]))
            for norm, expected in zip(result["norms"], result["expected_norms"]):
                self.assertAlmostEqual(norm, expected, delta=1e-3 * expected + 1e-6)

    def test_members_whose_programs_update_save_and_load_the_plain_state(self):
        results = self.results(1, 2, "own_state")
        for result in results:
            self.assertEqual(results[0]["ends"][0], result["ends"][0])
            self.assertEqual(result["ends"][0], result["ends"][1])
            self.assertEqual(["square_avg", "step"], [key for key in result["kept"]
                                                      if key in ("square_avg", "step")])
            self.assertEqual((True, True), (result["stays"], result["rests"]))

    def test_programs_that_update_go_on_without_a_member_that_dies(self):
        run = self.start_run(1, 3, [interpreter.PYTHON, _PROGRAMS, "killed", 3,
                                    os.path.join(self.folder, "killed")],
                             ["--on-failure", "continue"])
        self.assertEqual(0, run.exit_code(240), run)
        results = [json.loads(line[line.index('{"rank"'):]) for line in run.lines("stdout")
                   if '{"rank"' in line]
        self.assertEqual(["0", "2"], sorted(result["rank"] for result in results), run)
        self.assertEqual(results[0]["weights"], results[1]["weights"])
        self.assertEqual(30, len(results[0]["losses"]))
        self.assertEqual(results[0]["losses"], results[1]["losses"])
        self.assertLess(results[0]["losses"][-1], 0.5 * results[0]["losses"][0])

    def test_values_travel_in_fewer_bits(self):
        results = self.results(1, 2, "rounded")
        for result in results:
            self.assertEqual({True}, set(result["is_rounded"]))
            self.assertIn("value_wire is 'bfloat16', so the model has rounded", result["refused"])
            self.assertLess(result["losses"][-1], 0.5 * result["losses"][0])
        self.assertEqual(results[0]["losses"], results[1]["losses"])

    def test_adasum_is_that_of_the_members_gradients(self):
        for name, workers in (("adasum", 2), ("adasum", 3), ("adasum_program", 3)):
            for result in self.results(1, workers, name):
                self.assertLess(max(result["distances"]), 1e-5, name)
                self.assertIn("combine is 'sum'; use one of mean, adasum", result["refused"])

    def test_schedulers_of_pytorch_are_like_in_one_process(self):
        self.check_like_one_process("warmup")
        self.check_like_one_process("steps")

    def test_a_plain_optimizer_goes_on_from_the_state(self):
        for name, kept in (("saved", ["exp_avg", "exp_avg_sq", "step"]),
                           ("saved_momentum", ["momentum_buffer"])):
            for result in self.results(1, 2, name):
                self.assertEqual((0, kept), (result["empty"], result["kept"]))
                self.assertAlmostEqual(*result["before"], delta=1e-6)
                self.assertLess(result["after"][0], 0.9 * result["before"][0])
                self.assertAlmostEqual(*result["after"], delta=1e-4 * result["after"][0] + 1e-6)
                self.assertIn("steps were made", result["refused"])
                self.assertEqual(960, result["samples"])

    def test_goes_on_from_the_state_of_a_plain_optimizer_and_its_own(self):
        for name in ("loaded", "loaded_momentum", "loaded_adagrad", "loaded_before"):
            for result in self.results(1, 2, name):
                for loss, expected in result["losses"]:
                    self.assertAlmostEqual(loss, expected, delta=1e-4 * expected + 1e-6)
                self.assertEqual([True, True], result["kept"], name)
                # A plain optimizer has no place for the number.
                self.assertEqual([960, 960 if name == "loaded_before" else 1920],
                                 result["samples"], name)

    def test_says_what_it_cannot_load(self):
        said, = self.results(1, 1, "not_loaded")
        for about, text in (("shape", "exp_avg of 0.weight has shape (3,), and the parameter has"),
                            ("kind", "state of 0.weight has exp_avg, step; AdamW"),
                            ("option", "betas of parameter group 0 is (0.8, 0.9) in the state"),
                            ("amsgrad", "amsgrad of parameter group 0 is True"),
                            ("groups", "groups of [3]"), ("optimizer", "momentum"),
                            ("finite", "exp_avg of 0.weight has elements that are infinite"),
                            ("step", "step of 0.weight is 1e+30"), ("count", "is -1;"),
                            ("bare", '"samples"'), ("bare samples", "accepted"),
                            ("late", "steps were made before"), ("schedule", '"samples"'),
                            ("samples", "accepted"), ("local", "under 'local'")):
            self.assertIn(text, said[about], about)
        self.assertEqual((0, 1920), (said["unchanged"], said["has samples"]))
        self.assertTrue(said["fresh"], "the tables have the model's values of now")

    def test_tensors_that_an_iterator_makes_live_until_they_are_given(self):
        result, = self.results(1, 1, "iterated")
        self.assertEqual(([True] * 3, [0, 6, 12]), (result["lives"], result["read"]))

    def test_members_without_examples_are_left_out(self):
        for result in self.results(1, 2, "left_out"):
            self.assertLess(max(result["distances"]), 1e-5)

    def test_members_whose_gradients_are_not_finite_are_left_out(self):
        results = self.results(1, 2, "scaler")
        if "skipped" in results[0]:
            self.skipTest(results[0]["skipped"])
        for result in results:
            self.assertLess(max(result["distances"]), 1e-5)
            self.assertFalse(result["overlaps"])
        self.assertEqual([512.0, 256.0], sorted((result["scale"] for result in results),
                                                reverse=True))

    def test_says_what_it_does_not_support(self):
        said, = self.results(1, 1, "mistakes")
        for about, text in (("adadelta", "Adadelta"), ("amsgrad", "amsgrad=True"),
                            ("decoupled", "ADAMW"), ("names", "named_parameters"),
                            ("double", "float64"), ("samples", "samples_per_step"),
                            ("clipped", "max_norm="), ("copy", "TypeError"),
                            ("gradient that has left", "nan"),
                            ("zero_grad", "FailedPrecondition"),
                            ("twice", "arrived again"), ("rate", "before backward()"),
                            ("momentum", "cycle_momentum"), ("scaler", "overlap=False"),
                            ("lbfgs", "LBFGS"), ("contract of a program", "one group"),
                            ("schedule of a program", "scheduler of PyTorch"),
                            ("schedule of local", "scheduler of PyTorch"),
                            ("two schedules", "the one or the other")):
            self.assertIn(text, said[about], about)
        self.assertFalse(said["overlaps after clipping"])

    def test_servers_keep_float32_of_parameters_of_two_bytes(self):
        for result in self.results(1, 2, "of_two_bytes"):
            self.assertEqual((True, "torch.bfloat16"), (result["overlaps"], result["types"]))
            # Steps that bfloat16 alone would lose add up.
            self.assertLess(0.02, max(result["ways"]))
            self.assertLess(max(result["distances"]), 0.25 * max(result["ways"]))

    def test_refuses_old_versions(self):
        for version, code in (("1.12.1+cpu", 1), ("1.13.0a0", 0), ("2.0.0", 0)):
            run = self.run_to_end("import", [
                interpreter.PYTHON, "-c",
                f"import torch; torch.__version__ = '{version}'; import covey.torch"])
            self.assertEqual(code, run.code, run)
            self.assertEqual(code == 1, "needs PyTorch 1.13 or later" in str(run), run)

    def test_accumulates_gradients(self):
        result, = self.results(1, 1, "accumulation")
        for once, twice in zip(result["once"], result["twice"]):
            self.assertAlmostEqual(once, twice, delta=1e-5)

    def test_gives_each_example_to_one_worker(self):
        results = self.results(2, 2, "loader")
        for result in results:
            self.assertEqual([], result["after"])
            self.assertEqual([True] * 4, result["numbers"])
        for number in range(2):
            seen = [example for result in results for example in result["passes"][number]]
            self.assertEqual(list(range(96)), sorted(seen))

    def test_a_loop_that_ends_early_returns_the_rest_of_its_pass(self):
        result, = self.results(1, 1, "loader")
        self.assertEqual([True] * 5, result["numbers"])
        self.assertEqual(list(range(96)), sorted(result["passes"][2]))

    def test_backend(self):
        results = self.results(1, 3, "backend")
        for result in results:
            self.assertEqual([6.0] * 5, result["sum"])
            self.assertEqual([2**40 + 1, -1], result["numbers"])
            self.assertEqual((2, [0, 1, 2], 3.0, True), (
                result["largest"], result["gathered"], result["halves"], result["flag"]))
            self.assertEqual([[-8.0, 8.0], [-2, 2], [4, 2], [-8.0, 8.0]], result["combined"])
            self.assertEqual([[3, 3]] * 3, result["columns"])
            rank = int(result["rank"])
            self.assertEqual([rank, rank], result["smallest"])
            self.assertEqual([3.0 * rank] * 2, result["part"])
            self.assertEqual([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]] if rank == 1 else None,
                             result["together"])
            self.assertEqual([rank, rank], result["own"])
            self.assertEqual([100.0 * i + sum(i + j + 1 for j in range(rank)) + element
                              for i in range(3) for element in range(i + rank + 1)],
                             result["received"])
            self.assertEqual([0, 1, 2], result["objects"])
            self.assertIn("no send and recv", result["refused"])
            self.assertIn("has one group", result["refused"])
            self.assertEqual(3.0 if rank == 0 else 1.0, result["root"])

    def test_only_float32_travels_in_the_wire_format(self):
        for result in self.results(1, 3, "backend_in_int8"):
            self.assertEqual([2**40 + 1, -1], result["numbers"])
            self.assertEqual([[-8.0, 8.0], [-2, 2], [4, 2], [-8.0, 8.0]], result["combined"])
            self.assertEqual([0, 1, 2], result["objects"])

    def check_equal_weights(self, name):
        first, *others = self.results(1, 2, name)
        for other in others:
            self.assertEqual(first["weights"], other["weights"])

    def test_data_parallel_over_the_backend(self):
        self.check_equal_weights("ddp")

    def test_data_parallel_with_the_hook(self):
        self.check_equal_weights("hook")


if __name__ == "__main__":
    report.main()
