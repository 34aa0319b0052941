# SPDX-License-Identifier: Apache-2.0
"""Training with PyTorch: Covey beside DistributedDataParallel, with slow and dying workers.

Four workers on this machine, in two groups of two with Covey. Prints the accuracy after each pass.
"""

import json
import os
import pathlib
import signal
import time

import covey
from tests import report
from tests.process import cluster
from tests.python import interpreter, torchrun

_PROGRAM = pathlib.Path(__file__).with_name("pytorch_program.py")
_ACCURACY = 0.88
_WORKERS = 4
_SECONDS_MAX = 900


@interpreter.needs("torch")
class PyTorchTest(cluster.ProcessTest):
    def setUp(self):
        super().setUp()
        os.environ["PYTHONPATH"] = str(pathlib.Path(covey.__file__).parents[1])

    def start_ddp(self, folder, *options):
        return self.start("torchrun", [*torchrun.command(_WORKERS), _PROGRAM, "ddp", folder, *options],
                          torchrun.environment(self.folder))

    def start_covey(self, folder, *options):
        return self.start_run(2, 2, [interpreter.PYTHON, _PROGRAM, "covey", folder, *options],
                              ["--servers", 2])

    def new_folder(self, name):
        folder = pathlib.Path(self.folder) / name
        folder.mkdir()
        return folder

    def accuracies(self, folder):
        """[[seconds since the beginning, accuracy], ...], after each pass."""
        run = self.run_to_end("accuracies", [interpreter.PYTHON, _PROGRAM, "accuracies", folder],
                              seconds=120)
        self.assertEqual(0, run.code, run)
        return json.loads(run.lines("stdout")[-1])

    def seconds_until_good(self, start, name, *options):
        folder = self.new_folder(name)
        run = start(folder, *options)
        self.assertEqual(0, run.exit_code(_SECONDS_MAX), run)
        curve = self.accuracies(folder)
        print(name, " ".join(f"{seconds:.1f}s:{accuracy:.4f}" for seconds, accuracy in curve),
              flush=True)
        return next(seconds for seconds, accuracy in curve if accuracy >= _ACCURACY)

    def test_is_as_fast_on_equal_workers(self):
        ours = self.seconds_until_good(self.start_covey, "covey")
        theirs = self.seconds_until_good(self.start_ddp, "ddp")
        print(f"covey {ours:.1f} s, ddp {theirs:.1f} s, ratio {ours / theirs:.2f}", flush=True)
        self.assertLessEqual(ours, theirs)

    def test_a_slow_worker_holds_up_its_group_only(self):
        ours = self.seconds_until_good(self.start_covey, "covey-slow", "--slow-rank", 3)
        theirs = self.seconds_until_good(self.start_ddp, "ddp-slow", "--slow-rank", 3)
        print(f"covey {ours:.1f} s, ddp {theirs:.1f} s, ratio {ours / theirs:.2f}", flush=True)
        self.assertLessEqual(ours, 0.6 * theirs)

    def kill_after(self, run, folder, number, *victims):
        while not (folder / f"pass-{number:03}").exists():
            self.assertTrue(run.running(), run)
            time.sleep(0.1)
        for victim in victims:
            os.kill(victim(), signal.SIGKILL)

    def test_ends_without_a_worker_and_a_server(self):
        folder = self.new_folder("killed")
        run = self.start_covey(folder)

        def server():
            children = pathlib.Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
            return next(int(child) for child in children if "covey_server" in
                        pathlib.Path(f"/proc/{child}/cmdline").read_text())

        self.kill_after(run, folder, 3, lambda: int((folder / "pid-3").read_text()), server)
        self.assertEqual(0, run.exit_code(_SECONDS_MAX), run)
        curve = self.accuracies(folder)
        print("killed", " ".join(f"{s:.1f}s:{accuracy:.4f}" for s, accuracy in curve), flush=True)
        self.assertEqual(20, len(curve))
        self.assertGreaterEqual(max(accuracy for _, accuracy in curve), _ACCURACY)

        folder = self.new_folder("ddp-killed")
        run = self.start_ddp(folder)
        self.kill_after(run, folder, 3, lambda: int((folder / "pid-3").read_text()))
        self.assertNotEqual(0, run.exit_code(_SECONDS_MAX), run)


if __name__ == "__main__":
    report.main()
