# SPDX-License-Identifier: Apache-2.0
"""Calls to a secured scheduler by hand: with any certificate, any version of TLS, and any bytes."""

import os
import re
import socket
import ssl
import struct

from tests.process import http2, program

_FRAME_HEAD_BYTES = 9


def context(folder=None, newest=ssl.TLSVersion.TLSv1_3):
    """Shows the certificate in `folder`; None = none. Believes whoever answers."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    made.maximum_version = newest
    made.set_alpn_protocols(["h2"])
    if folder is not None:
        made.load_cert_chain(os.path.join(folder, "node.crt"), os.path.join(folder, "node.key"))
    return made


def connect(port):
    return socket.create_connection(("127.0.0.1", port), program.PATIENCE_SECONDS)


def read_all(connection, enough=lambda data: False):
    """What arrives until the end of the connection, or until it is enough."""
    data = b""
    try:
        while not enough(data):
            more = connection.recv(65536)
            if not more:
                break
            data += more
    except (ConnectionError, ssl.SSLError):
        pass
    return data


def answer(port, tls, data):
    """The first bytes with which a scheduler answers these. Empty: it has ended the connection.

    tls: a context; None = without TLS.
    """
    with connect(port) as plain:
        try:
            with plain if tls is None else tls.wrap_socket(plain) as connection:
                connection.sendall(data)
                return read_all(connection, enough=bool)
        except (ConnectionError, ssl.SSLError):
            return b""


class Reply:
    """Of a call: gRPC's code and message, and the bytes of the body."""

    def __init__(self, data):
        self.body = b"".join(payload for kind, payload in _frames(data) if kind == http2.DATA)[5:]
        # The first call of a connection: names and values are literals without compression.
        found = re.search(rb"grpc-status(.)(\d+)", data, re.DOTALL)
        self.code = int(found.group(2)[: found.group(1)[0]]) if found else None
        text = re.search(rb"grpc-message.([^\x00]*)", data, re.DOTALL)
        self.message = text.group(1).decode(errors="replace") if text else ""


def call(port, folder, method, body):
    """Calls a method of the scheduler once, over a connection of its own."""
    with connect(port) as plain, context(folder).wrap_socket(plain) as connection:
        connection.sendall(http2.opening() + http2.call(method, http2.grpc_message(body)))
        return Reply(read_all(connection, lambda data: b"grpc-status" in data
                              and _frames(data, complete=True)))


def _frames(data, complete=False):
    """(kind, payload) of each whole frame. complete: nothing unless the last one is whole."""
    found, at = [], 0
    while at + _FRAME_HEAD_BYTES <= len(data):
        size = struct.unpack(">I", b"\0" + data[at:at + 3])[0]
        end = at + _FRAME_HEAD_BYTES + size
        if end > len(data):
            break
        found.append((data[at + 3], data[at + _FRAME_HEAD_BYTES:end]))
        at = end
    return [] if complete and at != len(data) else found
