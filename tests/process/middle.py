# SPDX-License-Identifier: Apache-2.0
"""A forwarder in front of a data port, run by whoever has the network: it keeps what passes."""

import collections
import os
import re
import socket
import struct
import threading

from tests.process import zmtp

_KEPT_MESSAGES = 512


def listening_ports(pid):
    """The TCP ports that a process listens at."""
    inodes = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            found = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{name}"))
        except OSError:
            continue
        if found:
            inodes.add(found.group(1))
    ports = set()
    with open(f"/proc/{pid}/net/tcp", encoding="ascii") as table:
        for line in list(table)[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                ports.add(int(fields[1].partition(":")[2], 16))
    return ports


class Middle:
    """Listens at `port` of loopback, and forwards to the port that `behind` returns by then.

    `messages`: the newest that have passed to the port, each a list of its parts.
    """

    def __init__(self, behind):
        self.messages = collections.deque(maxlen=_KEPT_MESSAGES)
        self._behind = behind
        self._lock = threading.Lock()
        self._ends = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        """Ends all connections, too."""
        with self._lock:
            for end in (self._listener, *self._ends):
                _shut(end)
                end.close()

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return  # it was closed
            try:
                far = socket.create_connection(("127.0.0.1", self._behind()))
            except OSError:
                near.close()
                continue
            with self._lock:
                self._ends += [near, far]
            for source, target, keep in ((near, far, True), (far, near, False)):
                threading.Thread(target=self._forward, args=(source, target, keep),
                                 daemon=True).start()

    def _forward(self, source, target, keep):
        parser = _Parser(self.messages) if keep else None
        try:
            while data := source.recv(1 << 18):
                target.sendall(data)
                if parser:
                    parser.feed(data)
        except OSError:
            pass
        _shut(source)
        _shut(target)


def _shut(end):
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


class _Parser:
    """Cuts a connection's bytes into messages."""

    def __init__(self, messages):
        self._messages = messages
        self._left = b""
        self._greeted = False
        self._parts = []

    def feed(self, data):
        self._left += data
        if not self._greeted:
            if len(self._left) < zmtp.GREETING_BYTES:
                return
            self._greeted = True
            self._left = self._left[zmtp.GREETING_BYTES:]
        at = 0
        while (end := self._part(at)) is not None:
            at = end
        self._left = self._left[at:]

    def _part(self, at):
        """The end of the part that begins here; None = it has not arrived."""
        long = self._left[at:at + 1] and self._left[at] & 2
        begin = at + (9 if long else 2)
        if len(self._left) < begin:
            return None
        size = struct.unpack(">Q", self._left[at + 1:begin])[0] if long else self._left[at + 1]
        if len(self._left) < begin + size:
            return None
        flags = self._left[at]
        if not flags & 4:
            self._parts.append(self._left[begin:begin + size])
            if not flags & 1:
                self._messages.append(self._parts)
                self._parts = []
        return begin + size
