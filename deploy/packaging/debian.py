# SPDX-License-Identifier: Apache-2.0
"""The packages of Debian: covey, libcovey0, libcovey-dev and python3-covey.

The library is in a package of its own, named after its soname, as Debian's policy has it.
"""

import dataclasses
import datetime
import email.utils
import hashlib
import math
import os
import pathlib
import subprocess
import tempfile

from deploy.packaging import build as inputs
from deploy.packaging import completion, linked, man_pages, tree

_MAINTAINER = "The Covey Authors <maintainers@covey.invalid>"
_REVISION = "1"
_DIST = "usr/lib/python3/dist-packages"
_FOLDER = pathlib.Path(__file__).parent

_ABOUT = """\
 Covey keeps the parameters of a model on sharded servers. Workers synchronize
 every step inside their group; groups exchange parameters with the servers,
 asynchronously or under a contract that the user chooses.
"""

# Of deploy/systemd, and where the package has them.
_UNITS = "deploy/systemd"
_UNIT_FILES = {
    "covey-scheduler.service": "lib/systemd/system/covey-scheduler.service",
    "covey-server@.service": "lib/systemd/system/covey-server@.service",
    "covey-servers.target": "lib/systemd/system/covey-servers.target",
    "covey-worker@.service": "lib/systemd/system/covey-worker@.service",
    "covey.target": "lib/systemd/system/covey.target",
    "sysusers.conf": "usr/lib/sysusers.d/covey.conf",
    "tmpfiles.conf": "usr/lib/tmpfiles.d/covey.conf",
    "credentials.conf": "usr/share/doc/covey/examples/credentials.conf",
}
# Of deploy/monitoring, for Prometheus and Grafana.
_MONITORING = ("alerts.yaml", "dashboard.json", "prometheus.yml", "targets.json")
# An upgrade keeps what the operator has changed in them.
_SETTINGS = ("covey.env", "scheduler.yaml", "server.yaml", "worker.env")

# Nothing is started, and nothing restarted: that is for the operator to order.
_ADD_USER = """\
#!/bin/sh
set -e
if [ "$1" = configure ] && command -v systemd-sysusers > /dev/null; then
  systemd-sysusers covey.conf
  # Where it cannot, as in a root that is only being made, the next boot does it.
  systemd-tmpfiles --create covey.conf || true
fi
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi
"""
_STOP = """\
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
  systemctl stop covey.target
fi
"""
# Certificates and the state of jobs stay where they are.
_FORGET_UNITS = """\
#!/bin/sh
set -e
if [ "$1" = purge ]; then
  rmdir --ignore-fail-on-non-empty /etc/covey/tls /etc/covey 2> /dev/null || true
fi
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi
"""

# Python's compiled files belong to the machine, as those of Debian's own packages.
_COMPILE = """\
#!/bin/sh
set -e
if [ "$1" = configure ] && command -v py3compile > /dev/null; then
  py3compile -p python3-covey
fi
"""
_CLEAN = """\
#!/bin/sh
set -e
if command -v py3clean > /dev/null; then
  py3clean -p python3-covey
else
  find /usr/lib/python3/dist-packages/covey -type d -name __pycache__ -exec rm -r {} +
  rm -f /usr/lib/python3/dist-packages/__pycache__/covey_torch_backend.*
fi
"""


@dataclasses.dataclass
class _Package:
    name: str
    section: str
    summary: str
    detail: str
    depends: list
    multi_arch: str = ""
    recommends: str = ""
    suggests: str = ""


def make(build, output):
    """Writes the packages into the folder `output`; returns their paths."""
    with tempfile.TemporaryDirectory() as folder:
        return _Maker(build, pathlib.Path(output), pathlib.Path(folder)).make()


class _Maker:
    def __init__(self, build, output, folder):
        self._build = build
        self._output = output
        self._folder = folder
        self._version = build.version()
        self._triplet = linked.machine("DEB_HOST_MULTIARCH")
        self._library = f"usr/lib/{self._triplet}"

    def make(self):
        # In this order: what Python needs is found out with the library at hand.
        return [self._programs(), self._c_library(), self._development(), self._python()]

    def _tree(self, name):
        return tree.Tree(self._folder / name, self._build.epoch)

    def _exactly(self, name):
        return f"{name} (= {self._version}-{_REVISION})"

    def _programs(self):
        files = self._tree("covey")
        objects = []
        for name in inputs.PROGRAMS:
            files.program(f"usr/bin/{name}", self._build.program(name))
            objects.append(files.folder / "usr/bin" / name)
        worker = "usr/libexec/covey/synthetic"
        files.program(worker, self._build.output(inputs.SYNTHETIC))
        objects.append(files.folder / worker)
        pages = self._build.pages()
        for page in pages:
            files.compressed(
                f"usr/share/man/man{man_pages.section(page)}/{man_pages.file_name(page)}",
                man_pages.man_page(page, self._version, self._build.epoch, pages))
        files.write("usr/share/bash-completion/completions/covey", completion.bash(pages))
        self._units(files)
        for name in _MONITORING:
            files.copy(f"usr/share/covey/monitoring/{name}",
                       self._build.source(f"deploy/monitoring/{name}"))
        return self._pack(files, _Package(
            "covey", "science", "parameter server with hybrid synchrony",
            " This package has the scheduler, the server and the command covey.\n",
            linked.dependencies(objects)))

    def _units(self, files):
        for name, place in _UNIT_FILES.items():
            files.copy(place, self._build.source(f"{_UNITS}/{name}"))
        for name in _SETTINGS:
            files.copy(f"etc/covey/{name}", self._build.source(f"{_UNITS}/{name}"))
        files.write("DEBIAN/conffiles", "".join(f"/etc/covey/{name}\n" for name in _SETTINGS))
        files.write("DEBIAN/postinst", _ADD_USER, 0o755)
        files.write("DEBIAN/prerm", _STOP, 0o755)
        files.write("DEBIAN/postrm", _FORGET_UNITS, 0o755)

    def _c_library(self):
        files = self._tree("libcovey0")
        place = f"{self._library}/libcovey.so.0"
        files.program(place, self._build.output(inputs.LIBRARY), mode=0o644)
        files.write("DEBIAN/shlibs", f"libcovey 0 libcovey0 (>= {self._version})\n")
        files.write("DEBIAN/triggers", "activate-noawait ldconfig\n")
        return self._pack(files, _Package(
            "libcovey0", "libs", "parameter server with hybrid synchrony - C library",
            " This package has the library that programs in C load.\n",
            linked.dependencies([files.folder / place]), multi_arch="same"))

    def _development(self):
        files = self._tree("libcovey-dev")
        files.copy("usr/include/covey.h", self._build.source("client/c/covey.h"))
        files.link(f"{self._library}/libcovey.so", "libcovey.so.0")
        values = {"VERSION": self._version, "MAJOR": self._version.split(".")[0],
                  "TRIPLET": self._triplet}
        for template, place in (("covey.pc.in", "pkgconfig"),
                                ("coveyConfig.cmake.in", "cmake/covey"),
                                ("coveyConfigVersion.cmake.in", "cmake/covey")):
            text = (_FOLDER / template).read_text()
            for name, value in values.items():
                text = text.replace(f"@{name}@", value)
            files.write(f"{self._library}/{place}/{template.removesuffix('.in')}", text)
        # As a program outside the source tree includes the header.
        example = self._build.source("client/c/examples/counter.c").read_text()
        files.write("usr/share/doc/libcovey-dev/examples/counter.c",
                    example.replace('"client/c/covey.h"', "<covey.h>"))
        return self._pack(files, _Package(
            "libcovey-dev", "libdevel", "parameter server with hybrid synchrony - C header",
            " This package has what programs in C are built with, for pkg-config and CMake.\n",
            [self._exactly("libcovey0")], multi_arch="same"))

    def _python(self):
        files = self._tree("python3-covey")
        for path in self._build.python_files():
            files.copy(f"{_DIST}/{path}", self._build.source(f"{inputs.PYTHON}/{path}"))
        described = f"{_DIST}/covey-{self._version}.dist-info"
        files.write(f"{described}/METADATA", "Metadata-Version: 2.1\nName: covey\n"
                    f"Version: {self._version}\n")
        files.copy(f"{described}/entry_points.txt", self._build.entry_points())
        extension = f"{_DIST}/covey/_native.abi3.so"
        files.program(extension, self._build.output(inputs.EXTENSION), mode=0o644)
        # The library is where the system looks for libraries, and not beside the extension.
        (files.folder / extension).chmod(0o755)
        subprocess.run(["chrpath", "--delete", str(files.folder / extension)], check=True,
                       stdout=subprocess.DEVNULL)
        (files.folder / extension).chmod(0o644)
        files.write("DEBIAN/postinst", _COMPILE, 0o755)
        files.write("DEBIAN/prerm", _CLEAN, 0o755)
        needed = linked.dependencies(
            [files.folder / extension], own_folder=self._folder / "libcovey0" / self._library,
            own_library=self._exactly("libcovey0"))
        return self._pack(files, _Package(
            "python3-covey", "python", "parameter server with hybrid synchrony - Python 3",
            " This package has the module covey for Python, and covey.torch for PyTorch.\n",
            ["python3 (>= 3.11)", *needed],
            recommends="python3-numpy", suggests="covey, python3-torch"))

    def _pack(self, files, package):
        doc = f"usr/share/doc/{package.name}"
        files.copy(f"{doc}/copyright", self._build.source("docs/LICENSE"))
        files.compressed(f"{doc}/changelog", self._build.source("docs/CHANGELOG.md").read_bytes())
        files.compressed(f"{doc}/changelog.Debian", self._debian_changelog())
        files.write("DEBIAN/md5sums", self._sums(files))
        files.write("DEBIAN/control", self._control(files, package))
        files.settle()
        name = f"{package.name}_{self._version}-{_REVISION}_{linked.machine('DEB_HOST_ARCH')}.deb"
        path = self._output / name
        # Several threads would cut the content into other blocks on a machine with other cores.
        subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "--threads-max=1", "--build",
                        str(files.folder), str(path)], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "SOURCE_DATE_EPOCH": str(self._build.epoch)})
        return path

    def _debian_changelog(self):
        date = email.utils.format_datetime(
            datetime.datetime.fromtimestamp(self._build.epoch, datetime.timezone.utc))
        return (f"covey ({self._version}-{_REVISION}) bookworm; urgency=medium\n\n"
                "  * Packages of this version; changelog.gz says what is new.\n\n"
                f" -- {_MAINTAINER}  {date}\n")

    @staticmethod
    def _sums(files):
        lines = []
        for path in files.files():
            if not (files.folder / path).is_symlink():
                digest = hashlib.md5((files.folder / path).read_bytes(), usedforsecurity=False)
                lines.append(f"{digest.hexdigest()}  {path}\n")
        return "".join(lines)

    def _control(self, files, package):
        size = sum(max(1, math.ceil((files.folder / path).lstat().st_size / 1024))
                   for path in files.files())
        fields = {
            "Package": package.name,
            "Source": "covey" if package.name != "covey" else "",
            "Version": f"{self._version}-{_REVISION}",
            "Architecture": linked.machine("DEB_HOST_ARCH"),
            "Multi-Arch": package.multi_arch,
            "Maintainer": _MAINTAINER,
            "Installed-Size": str(size),
            "Depends": ", ".join(sorted(package.depends)),
            "Recommends": package.recommends,
            "Suggests": package.suggests,
            "Section": package.section,
            "Priority": "optional",
            "Description": package.summary,
        }
        lines = [f"{name}: {value}\n" for name, value in fields.items() if value]
        return "".join(lines) + _ABOUT + " .\n" + package.detail
