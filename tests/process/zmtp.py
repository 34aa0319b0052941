# SPDX-License-Identifier: Apache-2.0
"""ZeroMQ's wire protocol, ZMTP 3 with the NULL mechanism, by hand, so that a test can break it."""

import socket
import struct

GREETING_BYTES = 64


def greeting(minor=0, mechanism=b"NULL"):
    return (
        b"\xff" + bytes(8) + b"\x7f" + bytes([3, minor]) + mechanism.ljust(20, b"\0") + bytes(32)
    )


def part(body, more=False, command=False):
    """One frame of a connection, which ZMTP also calls a part of a message."""
    flags = (1 if more else 0) | (4 if command else 0)
    if len(body) < 256:
        return bytes([flags, len(body)]) + body
    return bytes([flags | 2]) + struct.pack(">Q", len(body)) + body


def lying_part(claimed_bytes, body=b""):
    """Claims a length that is unrelated to the rest."""
    return b"\x02" + struct.pack(">Q", claimed_bytes) + body


def message(parts):
    return b"".join(part(body, more=i + 1 < len(parts)) for i, body in enumerate(parts))


def ready(socket_type=b"DEALER", identity=b""):
    properties = b"".join(
        bytes([len(name)]) + name + struct.pack(">I", len(value)) + value
        for name, value in ((b"Socket-Type", socket_type), (b"Identity", identity))
    )
    return part(b"\x05READY" + properties, command=True)


class Peer:
    """A connection after the handshake; use it as a context."""

    def __init__(self, port, minor=0, seconds=60):
        self._socket = socket.create_connection(("127.0.0.1", port), seconds)
        self._socket.sendall(greeting(minor))
        self._receive(GREETING_BYTES)
        self._socket.sendall(ready())
        self.receive_part()  # the other side's READY

    def send(self, data):
        self._socket.sendall(data)

    def send_message(self, parts):
        self.send(message(parts))

    def receive_part(self):
        """(body, more)."""
        flags = self._receive(1)[0]
        size = struct.unpack(">Q", self._receive(8))[0] if flags & 2 else self._receive(1)[0]
        return self._receive(size), bool(flags & 1)

    def receive_message(self):
        parts, more = [], True
        while more:
            body, more = self.receive_part()
            parts.append(body)
        return parts

    def is_closed_by_the_other_side(self):
        """Waits for the end of the connection."""
        try:
            while self._socket.recv(4096):
                pass
        except ConnectionError:
            pass
        except TimeoutError:
            return False
        return True

    def _receive(self, size):
        data = b""
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            if not more:
                raise ConnectionError(f"closed after {len(data)} of {size} bytes")
            data += more
        return data

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()
