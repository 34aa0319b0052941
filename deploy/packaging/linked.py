# SPDX-License-Identifier: Apache-2.0
"""Which packages of Debian have the libraries that a program needs (dpkg-shlibdeps says so)."""

import pathlib
import re
import subprocess
import tempfile

from deploy.packaging import build as inputs


def dependencies(objects, own_folder=None, own_library=""):
    """The field Depends of the programs and libraries `objects`, as a list.

    `own_folder`: where libcovey.so.0 is, for objects that load it; `own_library`: the dependency
    that stands for it.
    """
    with tempfile.TemporaryDirectory() as folder:
        debian = pathlib.Path(folder, "debian")
        debian.mkdir()
        # dpkg-shlibdeps asks for one; nothing in it matters here.
        (debian / "control").write_text("Source: covey\n\nPackage: covey\nArchitecture: any\n")
        (debian / "shlibs.local").write_text(f"libcovey 0 {own_library}\n" if own_library else "")
        where = [f"-l{own_folder}"] if own_folder else []
        run = subprocess.run(["dpkg-shlibdeps", "-O", *where, *map(str, objects)], cwd=folder,
                             capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(f"dpkg-shlibdeps: {run.stderr.strip()}")
    field = re.search(r"^shlibs:Depends=(.*)$", run.stdout, re.MULTILINE)
    return field.group(1).split(", ") if field else []


def packages(build):
    """Names of the packages that all that we build needs at run time, sorted."""
    objects = [build.program(name) for name in inputs.PROGRAMS]
    found = dependencies(
        [*objects, build.output(inputs.SYNTHETIC), build.output(inputs.LIBRARY)])
    return sorted({dependency.split(" ")[0] for dependency in found})


def machine(question):
    """The machine's `question`, as dpkg-architecture names it: DEB_HOST_ARCH."""
    return subprocess.run(["dpkg-architecture", f"-q{question}"], check=True, text=True,
                          stdout=subprocess.PIPE).stdout.strip()
