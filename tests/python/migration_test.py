# SPDX-License-Identifier: Apache-2.0
"""Scripts as in the common tutorials: how few lines change for Covey, and that all of them train."""

import difflib
import os
import pathlib
import re
import unittest

from tests import report
from tests.process import cluster
from tests.python import installed, interpreter, torchrun

_ROOT = pathlib.Path(__file__).parents[2]
_SCRIPTS = _ROOT / "worker/examples/pytorch/migration"
_DOCUMENT = _ROOT / "docs/PYTORCH.md"
# The script that is changed, and the most lines that are new in the other one.
_WAYS = {"optimizer": ("", 5), "hook": ("_ddp", 3), "backend": ("_ddp", 1)}
_MODELS = ("cnn", "transformer")


def _lines(name):
    """Of a script, without its docstring."""
    text = (_SCRIPTS / f"{name}.py").read_text(encoding="utf-8")
    return re.sub(r'^""".*"""\n', "", text, count=1, flags=re.MULTILINE).splitlines()


def _difference(before, after):
    """The lines that go and come, each with its sign, without blank ones."""
    found = difflib.unified_diff(_lines(before), _lines(after), n=0, lineterm="")
    return [line for line in found
            if line[:2] not in ("--", "++", "@@") and line[1:].strip()]


class DifferenceTest(unittest.TestCase):
    def test_few_lines_change(self):
        for model in _MODELS:
            for way, (base, limit) in _WAYS.items():
                with self.subTest(model=model, way=way):
                    changed = _difference(model + base, f"{model}_{way}")
                    self.assertLessEqual(sum(line.startswith("+") for line in changed), limit)
                    self.assertTrue(all(line.startswith("+") or way != "hook" for line in changed))

    def test_the_document_shows_these_lines(self):
        document = _DOCUMENT.read_text(encoding="utf-8")
        for way, (base, _) in _WAYS.items():
            with self.subTest(way):
                self.assertIn("\n".join(_difference("cnn" + base, f"cnn_{way}")), document)


@interpreter.needs("torch")
@unittest.skipUnless(os.path.exists("/usr/share/datasets/fashion-mnist"), "needs the data set")
class TrainingTest(cluster.ProcessTest):
    def losses(self, script, workers):
        """What the script prints last, by rank."""
        starter = torchrun.command(workers) if workers > 1 else [interpreter.PYTHON]
        environment = torchrun.environment(self.folder)
        if script.endswith("_backend"):
            if interpreter.torch_finds_backends():
                environment["PYTHONPATH"] += f":{installed.metadata(self.folder)}"
            else:
                starter += ["-m", "covey.torch"]
        run = self.start(script, [*starter, _SCRIPTS / f"{script}.py",
                                  "--examples", 1280, "--epochs", 1], environment)
        self.assertEqual(0, run.exit_code(200), run)
        return sorted(line.rpartition("epoch 1: ")[2] for line in run.lines("stdout")
                      if "epoch 1: " in line)

    def test_all_train(self):
        for model in _MODELS:
            with self.subTest(model):
                self.assertEqual(1, len(self.losses(model, 1)))
                reduced_by_gloo = self.losses(f"{model}_ddp", 2)
                self.assertEqual(2, len(reduced_by_gloo))
                for way in ("hook", "backend"):
                    self.assertEqual(reduced_by_gloo, self.losses(f"{model}_{way}", 2), way)
                self.assertEqual(2, len(self.losses(f"{model}_optimizer", 2)))


if __name__ == "__main__":
    report.main()
