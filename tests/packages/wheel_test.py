# SPDX-License-Identifier: Apache-2.0
"""The wheel, installed with pip in an environment of venv, without a network."""

import base64
import hashlib
import os
import subprocess
import unittest
import zipfile

from deploy.packaging import wheel
from tests import report
from tests.packages import unpacked
from tests.process import cluster

_PYTHON = "/usr/bin/python3"
_TRAINS = """\
import array
{before}
import covey
{after}
with covey.connect() as client:
    table = client.create_table(covey.TableSpec("w", shape=(4,), optimizer=covey.sgd(1.0),
                                                contract="async"))
    table.push(array.array("f", [-1, -2, -3, -4])).wait()
    values = array.array("f", [0] * 4)
    table.pull(out=values).wait()
print("version", covey.__version__)
print("values", *values)
print("from", covey.__file__)
"""
_FINDS = """\
import importlib.metadata, sys
found, = importlib.metadata.entry_points(group="torch.backends", name="covey")
print(found.load().__module__ + ":" + found.attr, "covey" in sys.modules)
"""


def _has_torch():
    return subprocess.run([_PYTHON, "-c", "import torch"], capture_output=True).returncode == 0


class WheelTest(cluster.ProcessTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.shared = unpacked.folder_of_class(cls)
        cls.path = wheel.make(unpacked.INPUTS, cls.shared)
        cls.version = unpacked.INPUTS.version()
        cls.environment = {"HOME": str(cls.shared), "PYTHONPATH": ""}
        cls.venv = cls.shared / "venv"
        # Debian's NumPy and PyTorch may be seen; the package is this environment's.
        unpacked.run(_PYTHON, "-m", "venv", "--system-site-packages", cls.venv,
                     environment=cls.environment)
        unpacked.run(cls.venv / "bin/pip", "install", "--no-index", "--quiet",
                     "--disable-pip-version-check", cls.path, environment=cls.environment)

    def train(self, before="", after=""):
        """The lines that the program prints as a worker of `covey run`, all of it installed."""
        program = f"{self.folder}/train.py"
        with open(program, "w", encoding="utf-8") as file:
            file.write(_TRAINS.format(before=before, after=after))
        run = self.run_to_end("covey run", [
            self.venv / "bin/covey", "run", "--transport", "ipc", "--", self.venv / "bin/python",
            program], environment=self.environment)
        self.assertEqual(0, run.code, run)
        return " ".join(run.lines("stdout"))

    def test_trains_in_a_cluster_of_the_wheel(self):
        lines = self.train()
        self.assertIn(f"version {self.version}", lines)
        self.assertIn("values 1.0 2.0 3.0 4.0", lines)
        self.assertIn(f"from {self.venv}/lib", lines)

    @unittest.skipUnless(_has_torch(), "needs PyTorch: deploy/install-packages tests")
    def test_beside_torch_imported_before_and_after(self):
        # PyTorch loads Protocol Buffers, too.
        for before, after in (("import torch", ""), ("", "import torch")):
            lines = self.train(before, after + "\nimport covey.torch")
            self.assertIn("values 1.0 2.0 3.0 4.0", lines)

    def test_torch_finds_the_backend_without_loading_covey(self):
        # As `import torch` does from PyTorch 2.5 on.
        said = unpacked.run(self.venv / "bin/python", "-c", _FINDS, environment=self.environment)
        self.assertEqual("covey_torch_backend:register False\n", said)

    def test_installs_the_programs(self):
        for name in ("covey", "covey_scheduler", "covey_server"):
            self.assertEqual(f"{name} {self.version}\n",
                             unpacked.run(self.venv / "bin" / name, "--version"))
        # Where covey looks for the worker of its experiments.
        unpacked.run(self.venv / "libexec/covey/synthetic", "--version")

    def test_the_name_and_the_record(self):
        name, version, python, abi, _ = self.path.name.removesuffix(".whl").split("-")
        self.assertEqual(("covey", self.version, "cp311", "abi3"), (name, version, python, abi))
        with zipfile.ZipFile(self.path) as archive:
            names = archive.namelist()
            own = f"covey-{version}.dist-info/RECORD"
            recorded = [line.split(",") for line in archive.read(own).decode().splitlines()]
            self.assertEqual(sorted(names), sorted(path for path, _, _ in recorded))
            for path, digest, size in recorded:
                if path != own:
                    content = archive.read(path)
                    kind, _, value = digest.partition("=")
                    actual = base64.urlsafe_b64encode(hashlib.new(kind, content).digest())
                    self.assertEqual((actual.decode().rstrip("="), len(content)),
                                     (value, int(size)), path)
            inside = [path for path in names if not path.startswith(f"covey-{version}.")]
        self.assertEqual(
            sorted([*unpacked.INPUTS.python_files(), "covey/_native.abi3.so",
                    "covey/libcovey.so.0", "covey/debian-packages.txt"]), inside)
        self.assertIn("covey/py.typed", inside)

    def test_the_same_bytes_again(self):
        before = os.umask(0o077)
        try:
            made = wheel.make(unpacked.INPUTS, self.folder)
        finally:
            os.umask(before)
        self.assertEqual(self.path.read_bytes(), made.read_bytes())

    def test_says_which_packages_are_missing(self):
        with zipfile.ZipFile(self.path) as archive:
            archive.extractall(self.folder)
        # As if a library of Debian were missing.
        os.remove(f"{self.folder}/covey/libcovey.so.0")
        done = subprocess.run([_PYTHON, "-c", "import covey"], cwd=self.folder, text=True,
                              capture_output=True, env={**os.environ, **self.environment})
        self.assertEqual(1, done.returncode)
        self.assertRegex(done.stderr.splitlines()[-1],
                         r"^ImportError: covey: libcovey.so.0: cannot open .* "
                         r"apt-get install libabsl\S+ .*libgrpc\+\+\S+ .*libzmq5 zlib1g$")


if __name__ == "__main__":
    report.main()
