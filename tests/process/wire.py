# SPDX-License-Identifier: Apache-2.0
"""Messages of Covey as bytes, written by hand from common/net/wire.h and proto/: those of an honest
peer, from which a test makes dishonest ones."""

import pathlib
import re
import struct

ENVELOPE_BYTES_MAX = 64 << 10
FRAME_BYTES_MAX = 16 << 20
FRAMES_MAX = 4

# Field numbers of proto/envelope.proto.
HEADER, TO_NODE, TO_LOOP, FRAME_BYTES, FRAME_CHECKSUMS = 1, 3, 4, 6, 7
REGISTER_REQUEST, WATCH_VIEW_REPLY, CREATE_TABLE_REPLY = 10, 15, 17
PUSH_REQUEST, PUSH_REPLY, PULL_REQUEST, PULL_REPLY, LEASE_NOTICE = 40, 41, 42, 43, 85
REPLICATE_REQUEST, REPLICATE_REPLY, REPLICA_PIECE = 50, 51, 52
GROUP_SLICE, GROUP_ABORT, GROUP_PROBE, GROUP_HELLO, PEER_PROBE = 60, 61, 62, 63, 64

_PROTO = pathlib.Path(__file__).parents[2] / "proto"


def _bodies():
    """The field number of each body that an envelope may have."""
    envelope = (_PROTO / "envelope.proto").read_text(encoding="utf-8")
    oneof = envelope[envelope.index("oneof body {"):]
    return [int(field) for field in re.findall(r"^ *\w+ \w+ = (\d+);", oneof, re.MULTILINE)]


def methods():
    """The name of each call of the scheduler's service."""
    service = (_PROTO / "scheduler_service.proto").read_text(encoding="utf-8")
    return [name.encode() for name in re.findall(r"^ *rpc (\w+)\(", service, re.MULTILINE)]


# Bodies that data ports exchange (common/net/wire.h), those of them that only workers exchange, and
# all others.
DATA_BODIES = [body for body in _bodies() if 40 <= body <= 79]
WORKER_BODIES = [body for body in DATA_BODIES if body >= GROUP_SLICE]
OTHER_BODIES = [body for body in _bodies() if body not in DATA_BODIES]


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _CRC_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def _crc_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_CRC_TABLE = _crc_table()


def varint(value):
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)


def number(field, value):
    return varint(field << 3) + varint(value)


def fixed64(field, value):
    return varint(field << 3 | 1) + struct.pack("<Q", value)


def nested(field, body):
    return varint(field << 3 | 2) + varint(len(body)) + body


def header(job=0, node=0, incarnation=0, epoch=0, request_id=1):
    return nested(HEADER, fixed64(1, job) + number(2, node) + fixed64(3, incarnation)
                  + number(4, epoch) + number(5, request_id))


def frame_sizes(frames):
    return nested(FRAME_BYTES, b"".join(varint(len(frame)) for frame in frames))


def envelope(body_field, body, frames=(), sizes=None, **identity):
    """`sizes`: the claimed sizes of its frames, instead of the real ones."""
    claim = frame_sizes(frames) if sizes is None else nested(
        FRAME_BYTES, b"".join(map(varint, sizes)))
    return header(**identity) + claim + nested(body_field, body)


def push(table, shard=0, samples=1, sequence=1, producer=9, generation=1, kind=0, incarnation=1):
    """The body of a PushRequest."""
    identity = (number(1, table) + number(2, shard) + number(3, producer) + number(4, kind)
                + fixed64(5, incarnation) + number(6, sequence))
    return nested(1, identity) + number(2, generation) + number(3, samples) + number(9, 1000)


def group_push(table, group, step, group_generation, **more):
    """The body of a PushRequest of a group's step."""
    return (push(table, sequence=step, producer=group, kind=1, incarnation=group_generation, **more)
            + number(5, step) + number(7, group) + number(8, group_generation))


def pull(table, shard=0, generation=1):
    """The body of a PullRequest."""
    return number(1, table) + number(2, shard) + number(3, generation) + number(5, 1000)


def head(envelope_bytes, magic=b"CVEY", version=1, flags=0, claimed=None, checksum=None):
    """The first frame of a message."""
    claimed = len(envelope_bytes) if claimed is None else claimed
    checksum = crc32c(envelope_bytes) if checksum is None else checksum
    return magic + bytes([version, flags, 0, 0]) + struct.pack(
        "<II", claimed, checksum) + envelope_bytes
