# SPDX-License-Identifier: Apache-2.0
"""An etcd cluster on loopback, for tests that need one."""

import os
import shutil
import socket
import subprocess

from tests.process import program

_ETCD = shutil.which("etcd")
MISSING = None if _ETCD else "needs etcd: deploy/install-packages tests"


def free_ports(count):
    """Ports that were free a moment ago; etcd cannot choose one itself and report it."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Etcd:
    """An etcd cluster of the given size; `test` is the ProcessTest that ends it."""

    def __init__(self, test, members=1):
        self._test = test
        ports = free_ports(2 * members)
        self._clients, self._peers = ports[:members], ports[members:]
        self.addresses = [f"127.0.0.1:{port}" for port in self._clients]
        self.members = [None] * members
        for number in range(members):
            self.start(number)
        program.await_true(self._healthy, f"a healthy {self.members}")

    def start(self, number):
        """Starts a member for the first time, or again with its former data."""
        peer = f"http://127.0.0.1:{self._peers[number]}"
        client = f"http://127.0.0.1:{self._clients[number]}"
        self.members[number] = self._test.start(f"etcd-{number}", [
            _ETCD, "--name", f"etcd-{number}",
            "--data-dir", os.path.join(self._test.folder, f"etcd-{number}"),
            "--listen-client-urls", client, "--advertise-client-urls", client,
            "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
            "--initial-cluster", ",".join(f"etcd-{other}=http://127.0.0.1:{port}"
                                          for other, port in enumerate(self._peers)),
        ])

    def _healthy(self):
        # etcd's client is a separate package. A port that accepts connections is all that is needed
        # here, since schedulers stand by until etcd answers.
        for port in self._clients:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
            except OSError:
                return False
        return True

    def leader(self):
        """The number of the member that leads; None when it is unknown."""
        control = shutil.which("etcdctl")
        if control is None:
            return None
        run = subprocess.run(
            [control, "--endpoints", ",".join(self.addresses), "endpoint", "status"],
            capture_output=True, text=True, env={**os.environ, "ETCDCTL_API": "3"},
            timeout=program.PATIENCE_SECONDS)
        for number, address in enumerate(self.addresses):
            for line in run.stdout.splitlines():
                fields = [field.strip() for field in line.split(",")]
                if fields[0] == address and fields[4] == "true":
                    return number
        return None
