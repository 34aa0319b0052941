# SPDX-License-Identifier: Apache-2.0
"""The packages of what Bazel has built for this test, and the .deb files unpacked into one root."""

import os
import pathlib
import shutil
import subprocess
import tempfile

from deploy.packaging import build, debian
from tests.process import cluster

ROOT = pathlib.Path(__file__).parents[2]
EPOCH = 1700000000
# Sources and what is built of them lie in one tree beside a test.
INPUTS = build.Build(ROOT, ROOT, EPOCH)
TRIPLET = debian.linked.machine("DEB_HOST_MULTIARCH")


def run(*command, folder=None, environment=None):
    """The output of `command`, which must succeed."""
    done = subprocess.run([str(word) for word in command], cwd=folder, text=True,
                          capture_output=True, env={**os.environ, **(environment or {})})
    if done.returncode:
        raise AssertionError(f"{command}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def folder_of_class(test_class):
    """A folder that is removed when the tests of the class have ended."""
    folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
    test_class.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)
    return pathlib.Path(folder)


class DebianTest(cluster.ProcessTest):
    """Has the .deb files as `packages`, by name, and their content under `root`."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.shared = folder_of_class(cls)
        cls.root = cls.shared / "root"
        cls.packages = {}
        (cls.shared / "packages").mkdir()
        for path in debian.make(INPUTS, cls.shared / "packages"):
            cls.packages[path.name.split("_")[0]] = path
            run("dpkg-deb", "-x", path, cls.root)
        cls.version = INPUTS.version()

    def field(self, package, name):
        return run("dpkg-deb", "-f", self.packages[package], name).strip()

    def content(self, package):
        """Paths of the package's files and links, sorted."""
        lines = run("dpkg-deb", "-c", self.packages[package]).splitlines()
        return sorted(line.split()[5].removeprefix("./") for line in lines if line[0] != "d")
