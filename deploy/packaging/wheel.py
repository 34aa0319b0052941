# SPDX-License-Identifier: Apache-2.0
"""The wheel: the package covey for Python with its library, and the three programs.

It is for Debian 12: gRPC, Protocol Buffers, ZeroMQ and Abseil come from Debian's packages, whose
names are in a file of the wheel, so that `import covey` can say which are missing.
"""

import base64
import hashlib
import pathlib
import platform
import stat
import tempfile
import time
import zipfile

from deploy.packaging import build as inputs
from deploy.packaging import linked, tree

_TAG = "cp311-abi3-linux_{}"
# Times in a zip file begin with this year.
_EPOCH_MIN = 315532800

_METADATA = """\
Metadata-Version: 2.1
Name: covey
Version: {version}
Summary: Parameter server with hybrid synchrony: sharded servers for training in groups
License: Apache-2.0
Platform: linux
Classifier: License :: OSI Approved :: Apache Software License
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Classifier: Topic :: Scientific/Engineering :: Artificial Intelligence
Requires-Python: >=3.11
Provides-Extra: numpy
Requires-Dist: numpy; extra == "numpy"
Provides-Extra: torch
Requires-Dist: torch>=1.13; extra == "torch"
Description-Content-Type: text/markdown

The package `covey`, with `covey.torch` for PyTorch, and the programs `covey`, `covey_scheduler` and `covey_server`. This wheel is for
Debian 12, with these packages of Debian installed:

    apt-get install {packages}
"""


def make(build, output):
    """Writes the wheel into the folder `output`; returns its path."""
    version = build.version()
    tag = _TAG.format(platform.machine())
    packages = " ".join(linked.packages(build))
    with tempfile.TemporaryDirectory() as folder:
        files = tree.Tree(pathlib.Path(folder, "wheel"), build.epoch)
        for path in build.python_files():
            files.copy(path, build.source(f"{inputs.PYTHON}/{path}"))
        files.program("covey/_native.abi3.so", build.output(inputs.EXTENSION))
        files.program("covey/libcovey.so.0", build.output(inputs.LIBRARY))
        files.write("covey/debian-packages.txt", packages + "\n")
        for name in inputs.PROGRAMS:
            files.program(f"covey-{version}.data/scripts/{name}", build.program(name))
        files.program(f"covey-{version}.data/data/libexec/covey/synthetic",
                      build.output(inputs.SYNTHETIC))
        described = f"covey-{version}.dist-info"
        files.write(f"{described}/METADATA", _METADATA.format(version=version, packages=packages))
        files.write(f"{described}/WHEEL", "Wheel-Version: 1.0\nGenerator: covey\n"
                    f"Root-Is-Purelib: false\nTag: {tag}\n")
        files.copy(f"{described}/entry_points.txt", build.entry_points())
        files.copy(f"{described}/LICENSE", build.source("docs/LICENSE"))
        files.write(f"{described}/RECORD", _record(files, f"{described}/RECORD"))
        path = pathlib.Path(output, f"covey-{version}-{tag}.whl")
        _zip(files, path, build.epoch)
    return path


def _record(files, own):
    lines = []
    for path in files.files():
        content = (files.folder / path).read_bytes()
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(content)}\n")
    return "".join(lines) + f"{own},,\n"


def _zip(files, path, epoch):
    date = time.gmtime(max(epoch, _EPOCH_MIN))[:6]
    with zipfile.ZipFile(path, "w") as archive:
        for name in files.files():
            entry = zipfile.ZipInfo(name, date)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, whose modes follow
            mode = stat.S_IMODE((files.folder / name).stat().st_mode)
            entry.external_attr = (stat.S_IFREG | mode) << 16
            archive.writestr(entry, (files.folder / name).read_bytes(), compresslevel=9)
