# SPDX-License-Identifier: Apache-2.0
"""Where the inputs of packages are: the source tree, and what Bazel has built of it."""

import dataclasses
import pathlib

from deploy.packaging import help_text

PROGRAMS = {  # where Bazel builds them
    "covey": "client/cli/covey",
    "covey_scheduler": "scheduler/covey_scheduler",
    "covey_server": "server/covey_server",
}
# The worker of `covey chaos`, which covey looks for in libexec beside its own folder.
SYNTHETIC = "worker/examples/synthetic/synthetic"
LIBRARY = "client/c/libcovey.so.0"
EXTENSION = "client/python/covey/_native.abi3.so"
PYTHON = "client/python"


@dataclasses.dataclass
class Build:
    sources: pathlib.Path
    built: pathlib.Path   # bazel-bin
    epoch: int            # seconds since 1970 that date every file: those of the commit

    def source(self, path):
        return self.sources / path

    def output(self, path):
        return self.built / path

    def program(self, name):
        return str(self.output(PROGRAMS[name]))

    def version(self):
        return help_text.version_of(self.program("covey"))

    def pages(self):
        return help_text.pages_of(self.program("covey"),
                                  [self.program("covey_scheduler"), self.program("covey_server")])

    def python_files(self):
        """Paths beside and in the package covey of what is not built, sorted."""
        folder = self.source(PYTHON)
        return sorted(str(path.relative_to(folder)) for path in folder.rglob("*")
                      if path.suffix in (".py", ".pyi", ".typed"))

    def entry_points(self):
        """What other packages find of covey, for the metadata of Python's packages."""
        return self.source(PYTHON) / "entry_points.txt"
