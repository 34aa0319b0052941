# SPDX-License-Identifier: Apache-2.0
"""Hosts with a real sshd each, as network namespaces on one switch; a folder of each host's own.

The namespaces share a file system and process ids, so each host has its part of both by its folder.
Needs root and Debian's openssh-server; otherwise tests are skipped with the reason.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import unittest

from tests.process import network, program

_SSHD = "/usr/sbin/sshd"
_PORT = 2222


_USER_ID = 54321


class SshHosts:
    """Hosts that the user of `here`, one more host, reaches without a password. Ends with `test`.

    subnet: what their addresses begin with.
    user: as whom one logs in there.
    """

    def __init__(self, test, count, subnet="10.44.0.", user="root"):
        if os.getuid() != 0 or not os.path.exists(_SSHD):
            reason = "needs root and Debian's openssh-server"
            print(f"SKIPPED: {reason}", flush=True)
            raise unittest.SkipTest(reason)
        self._test = test
        self.user = user
        addresses = [f"{subnet}{index + 1}" for index in range(count + 1)]
        self.here, *self.nodes = network.Hosts(test, addresses).nodes
        self._folder = test.folder if user == "root" else self._add_user()
        os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
        for name in ("user_key", "host_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self._path(name)],
                           check=True, stdin=subprocess.DEVNULL)
        shutil.copy(self._path("user_key.pub"), self._path("authorized_keys"))
        test.addCleanup(self._kill_all)
        self.daemons = [self._start_sshd(node) for node in self.nodes]

    def _add_user(self):
        """A user that this test alone knows of; returns its home, outside the folders of root."""
        home = tempfile.mkdtemp(prefix="covey-", dir="/tmp")
        self._test.addCleanup(shutil.rmtree, home, ignore_errors=True)
        os.chown(home, _USER_ID, _USER_ID)
        for path, entry in (("/etc/passwd", f"{self.user}:*:{_USER_ID}:{_USER_ID}::{home}:/bin/sh"),
                            ("/etc/group", f"{self.user}:x:{_USER_ID}:")):
            with open(path, encoding="utf-8") as file:
                network.show_file(self._test, path, file.read() + entry + "\n")
        return home

    def _path(self, name):
        return os.path.join(self._folder, name)

    def _start_sshd(self, node):
        config = self._path(f"sshd-{node.name}")
        with open(config, "w", encoding="ascii") as file:
            file.write(f"""ListenAddress {node.address}
Port {_PORT}
HostKey {self._path('host_key')}
AuthorizedKeysFile {self._path('authorized_keys')}
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin yes
Subsystem sftp internal-sftp
""")
        daemon = self._test.start(f"sshd-{node.name}", [*node.command(), _SSHD, "-D", "-e", "-f", config])
        # It writes its title over the environment by which others are found and killed.
        self._test.addCleanup(daemon.signal, signal.SIGKILL)
        daemon.await_line("Server listening")
        return daemon

    def folder(self, index):
        """Of the job, on a host."""
        return self._path(f"on-host-{index}")

    def settings(self, extra_hosts=()):
        """The parts `ssh` and `hosts` of HOSTS.yaml. extra_hosts: addresses where nobody is."""
        text = (f"ssh:\n  port: {_PORT}\n  user: {self.user}\n  identity: {self._path('user_key')}\n"
                f"  connect_deadline: 5s\n"
                f"  options: [StrictHostKeyChecking=accept-new, IdentitiesOnly=yes, "
                f"UserKnownHostsFile={self._path('known_hosts')}]\nhosts:\n")
        for index, address in enumerate([*(node.address for node in self.nodes), *extra_hosts]):
            text += (f"  {address}: {{labels: site/rack-{index}, folder: {self.folder(index)}}}\n")
        return text

    def process_id(self, index, name):
        """Of a process on a host, as its file says."""
        with open(os.path.join(self.folder(index), "run", name + ".pid"), encoding="ascii") as file:
            return int(file.read().split()[0])

    def _kill_all(self):
        """What `down` left: nothing but this knows of processes that outlive their connection."""
        for index in range(len(self.nodes)):
            folder = os.path.join(self.folder(index), "run")
            for entry in os.listdir(folder) if os.path.isdir(folder) else ():
                if entry.endswith(".pid"):
                    pid = self.process_id(index, entry.removesuffix(".pid"))
                    if is_running(pid) and os.readlink(f"/proc/{pid}/cwd") == self.folder(index):
                        os.kill(pid, signal.SIGKILL)


def is_running(pid):
    """Whether there is such a process, and it has not ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False


def await_end(pid):
    program.await_true(lambda: not is_running(pid), f"the end of process {pid}")
