# SPDX-License-Identifier: Apache-2.0
"""Enough of HTTP/2 to make a gRPC call by hand, or to break one."""

import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = (
    0, 1, 3, 4, 6, 7, 8, 9)
END_STREAM, ACK, END_HEADERS = 1, 1, 4


def frame(kind, flags=0, stream=0, payload=b"", claimed=None):
    """`claimed`: the length that the frame claims, instead of the real one."""
    size = len(payload) if claimed is None else claimed
    return struct.pack(">I", size)[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def headers(path):
    """HPACK literals without Huffman coding or indexing."""
    fields = [
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", path),
        (b":authority", b"localhost"),
        (b"content-type", b"application/grpc"),
        (b"te", b"trailers"),
    ]
    return b"".join(bytes([0, len(name)]) + name + bytes([len(value)]) + value
                    for name, value in fields)


def opening():
    return PREFACE + frame(SETTINGS)


def grpc_message(body, claimed=None, compressed=0):
    size = len(body) if claimed is None else claimed
    return bytes([compressed]) + struct.pack(">I", size) + body


def call(method, message_bytes, stream=1):
    """A complete gRPC call to the scheduler's service."""
    path = b"/covey.proto.Scheduler/" + method
    return (frame(HEADERS, END_HEADERS, stream, headers(path))
            + frame(DATA, END_STREAM, stream, message_bytes))
