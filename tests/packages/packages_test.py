# SPDX-License-Identifier: Apache-2.0
"""The packages of Debian: what they hold, and programs in C that are built with them."""

import hashlib
import os
import re
import subprocess
import textwrap

from deploy.packaging import debian
from tests import report
from tests.packages import unpacked

_LIBRARY = f"usr/lib/{unpacked.TRIPLET}"
_PYTHON = "usr/lib/python3/dist-packages"
_PROGRAMS = ["covey", "covey_scheduler", "covey_server"]
_SETTINGS = ["covey.env", "scheduler.yaml", "server.yaml", "worker.env"]


def _documents(package):
    return [f"usr/share/doc/{package}/{name}"
            for name in ("changelog.Debian.gz", "changelog.gz", "copyright")]


class PackagesTest(unpacked.DebianTest):
    def environment(self):
        return {"PKG_CONFIG_PATH": str(self.root / _LIBRARY / "pkgconfig"),
                "LD_LIBRARY_PATH": str(self.root / _LIBRARY)}

    def assert_counts(self, program):
        """`program` is the example, which counts its runs, here three in one cluster."""
        # Runs the scheduler and the server beside it, which come from the package, too.
        run = self.run_to_end("covey run", [
            self.root / "usr/bin/covey", "run", "--transport", "ipc", "--workers", 3, "--",
            program], environment=self.environment())
        self.assertEqual(0, run.code, run)
        self.assertIn("counted 3 times", " ".join(run.lines("stdout")), run)

    def test_the_same_bytes_again(self):
        again = unpacked.folder_of_class(type(self))
        before = os.umask(0o077)
        try:
            made = debian.make(unpacked.INPUTS, again)
        finally:
            os.umask(before)
        for path in made:
            self.assertEqual(self.packages[path.name.split("_")[0]].read_bytes(), path.read_bytes(),
                             path.name)

    def test_every_file_is_expected(self):
        commands = [page.name.split()[1] for page in unpacked.INPUTS.pages()
                    if " " in page.name]
        self.assertGreater(len(commands), 9)
        self.assertEqual(sorted(
            [f"usr/bin/{name}" for name in _PROGRAMS] + _documents("covey")
            + ["usr/libexec/covey/synthetic"]
            + [f"usr/share/man/man1/covey-{command}.1.gz" for command in commands]
            + ["usr/share/man/man1/covey.1.gz", "usr/share/man/man8/covey_scheduler.8.gz",
               "usr/share/man/man8/covey_server.8.gz",
               "usr/share/bash-completion/completions/covey"]
            + [f"etc/covey/{name}" for name in _SETTINGS]
            + [f"lib/systemd/system/covey-{name}.service"
               for name in ("scheduler", "server@", "worker@")]
            + ["lib/systemd/system/covey-servers.target", "lib/systemd/system/covey.target"]
            + ["usr/lib/sysusers.d/covey.conf", "usr/lib/tmpfiles.d/covey.conf",
               "usr/share/doc/covey/examples/credentials.conf"]
            + [f"usr/share/covey/monitoring/{name}"
               for name in ("alerts.yaml", "dashboard.json", "prometheus.yml", "targets.json")]),
            self.content("covey"))
        self.assertEqual(sorted([f"{_LIBRARY}/libcovey.so.0", *_documents("libcovey0")]),
                         self.content("libcovey0"))
        self.assertEqual(sorted([
            "usr/include/covey.h", f"{_LIBRARY}/libcovey.so", f"{_LIBRARY}/pkgconfig/covey.pc",
            f"{_LIBRARY}/cmake/covey/coveyConfig.cmake",
            f"{_LIBRARY}/cmake/covey/coveyConfigVersion.cmake",
            "usr/share/doc/libcovey-dev/examples/counter.c", *_documents("libcovey-dev")]),
            self.content("libcovey-dev"))
        self.assertEqual(sorted(
            [f"{_PYTHON}/{path}" for path in unpacked.INPUTS.python_files()]
            + [f"{_PYTHON}/covey/_native.abi3.so", *_documents("python3-covey")]
            + [f"{_PYTHON}/covey-{self.version}.dist-info/{name}"
               for name in ("METADATA", "entry_points.txt")]),
            self.content("python3-covey"))

    def test_settings_are_the_operators(self):
        conffiles = unpacked.run("dpkg-deb", "-I", self.packages["covey"], "conffiles").split()
        self.assertEqual([f"/etc/covey/{name}" for name in _SETTINGS], conffiles)

    def test_checksums_are_those_of_the_files(self):
        for name, package in self.packages.items():
            sums = unpacked.run("dpkg-deb", "-I", package, "md5sums").splitlines()
            named = dict(reversed(line.split("  ")) for line in sums)
            # A link has none.
            for path in self.content(name):
                if not (self.root / path).is_symlink():
                    digest = hashlib.md5((self.root / path).read_bytes()).hexdigest()
                    self.assertEqual(digest, named.pop(path), path)
            self.assertEqual({}, named)

    def test_one_version_everywhere(self):
        self.assertRegex(self.version, r"^\d+\.\d+\.\d+$")
        for package in self.packages:
            self.assertEqual(f"{self.version}-1", self.field(package, "Version"))
        for name in _PROGRAMS:
            self.assertEqual(f"{name} {self.version}\n",
                             unpacked.run(self.root / "usr/bin" / name, "--version"))
        self.assertEqual(self.version, unpacked.run(
            "pkg-config", "--modversion", "covey", environment=self.environment()).strip())

    def test_dependencies_are_those_of_the_libraries(self):
        for package in ("covey", "libcovey0"):
            for library in ("libgrpc++1.51", "libprotobuf32", "libzmq5", "libc6"):
                self.assertIn(library, self.field(package, "Depends"))
        exact = f"libcovey0 (= {self.version}-1)"
        self.assertEqual(exact, self.field("libcovey-dev", "Depends"))
        self.assertIn(exact, self.field("python3-covey", "Depends"))
        self.assertNotIn("libgrpc", self.field("python3-covey", "Depends"))

    def test_the_library_shows_its_own_functions_only(self):
        names = unpacked.run("nm", "-D", "--defined-only", "--format=posix",
                             self.root / _LIBRARY / "libcovey.so.0").splitlines()
        others = [line for line in names
                  if not line.startswith("covey_") and not line.startswith("COVEY_1")]
        self.assertEqual([], others)

    def test_a_program_in_c_by_pkg_config(self):
        flags = unpacked.run("pkg-config", "--cflags", "--libs", "covey",
                             environment=self.environment()).split()
        source = self.root / "usr/share/doc/libcovey-dev/examples/counter.c"
        unpacked.run("cc", "-std=c11", "-Wall", "-Werror", "-o", "counter", source, *flags,
                     folder=self.folder)
        self.assert_counts(f"{self.folder}/counter")

    def test_a_program_in_c_by_cmake(self):
        major, minor, _ = self.version.split(".")
        project = textwrap.dedent("""\
            cmake_minimum_required(VERSION 3.18)
            project(counter C)
            find_package(covey {}.{} REQUIRED)
            add_executable(counter ${{EXAMPLE}})
            target_link_libraries(counter covey::covey)
            file(WRITE ${{CMAKE_BINARY_DIR}}/version "${{covey_VERSION}}")
            """).format(major, minor)
        with open(f"{self.folder}/CMakeLists.txt", "w", encoding="utf-8") as file:
            file.write(project)
        source = self.root / "usr/share/doc/libcovey-dev/examples/counter.c"
        unpacked.run("cmake", "-S", ".", "-B", "built", f"-DEXAMPLE={source}",
                     f"-DCMAKE_PREFIX_PATH={self.root}/usr",
                     f"-DCMAKE_LIBRARY_ARCHITECTURE={unpacked.TRIPLET}", folder=self.folder)
        unpacked.run("cmake", "--build", "built", folder=self.folder)
        with open(f"{self.folder}/built/version", encoding="utf-8") as file:
            self.assertEqual(self.version, file.read())
        self.assert_counts(f"{self.folder}/built/counter")

    def test_chaos_finds_its_worker(self):
        run = self.start("covey chaos", [self.root / "usr/bin/covey", "chaos", "kill-group"])
        run.await_line("killing all of group 1")  # so they train

    def test_cmake_refuses_another_version(self):
        with open(f"{self.folder}/CMakeLists.txt", "w", encoding="utf-8") as file:
            file.write("cmake_minimum_required(VERSION 3.18)\nproject(counter C)\n"
                       "find_package(covey 99.0 REQUIRED)\n")
        with self.assertRaisesRegex(AssertionError, f"version: {self.version}"):
            unpacked.run("cmake", "-S", ".", "-B", "built", f"-DCMAKE_PREFIX_PATH={self.root}/usr",
                         f"-DCMAKE_LIBRARY_ARCHITECTURE={unpacked.TRIPLET}", folder=self.folder)

    def test_man_pages_are_well_formed_and_name_every_option(self):
        environment = {"LC_ALL": "C.UTF-8", "MANWIDTH": "200", "HOME": self.folder}
        for page in unpacked.INPUTS.pages():
            name = page.name.replace(" ", "-")
            [path] = self.root.glob(f"usr/share/man/man?/{name}.?.gz")
            shown = subprocess.run(["man", "--warnings", "-l", "-Tutf8", str(path)], text=True,
                                   capture_output=True, check=True,
                                   env={**os.environ, **environment})
            self.assertEqual("", shown.stderr, name)
            # Bold letters are struck twice.
            text = " ".join(re.sub(".\b", "", shown.stdout).split())
            for option in page.options:
                for word in (*option.flags, option.variable):
                    self.assertIn(word, text, name)
            for command, summary in page.commands:
                self.assertIn(f"{command} {summary}", text, name)

    def complete(self, *words):
        """What bash offers for the last of `words`."""
        script = self.root / "usr/share/bash-completion/completions/covey"
        quoted = " ".join(f"'{word}'" for word in words)
        return unpacked.run("bash", "-uc", f". {script}; COMP_WORDS=({quoted}); "
                            f"COMP_CWORD={len(words) - 1}; _covey; "
                            'printf "%s\\n" "${COMPREPLY[@]}"').split()

    def test_completion(self):
        self.assertEqual(["scale", "simulate", "snapshot", "status"],
                         self.complete("covey", "s"))
        self.assertEqual(["--servers", "--server-loops", "--server-binary"],
                         self.complete("covey", "run", "--server"))
        self.assertEqual(["verify"], self.complete("covey", "snapshot", "v"))
        self.assertEqual(["kill-server", "kill-group"], self.complete("covey", "chaos", "kill"))
        self.assertEqual(["set-contract"], self.complete("covey", "tables", "s"))
        # Bash offers files for these.
        self.assertEqual([], self.complete("covey", "run", "--", "python3", "train"))
        self.assertEqual([], self.complete("covey", "no-such-command", "-"))
        self.assertIn("bash", self.complete("covey", "run", "--", "bas"))


if __name__ == "__main__":
    report.main()
