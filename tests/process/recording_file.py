# SPDX-License-Identifier: Apache-2.0
"""Files of a recording, taken apart and put together again: common/recording/recording_file.h."""

import dataclasses
import struct

from tests.process import wire

_HEADER_BYTES = 40
_SHARD_BEGIN, _RECORD, _DIGEST = 1, 2, 3
_IS_OF_GROUPS_STEP = 4


@dataclasses.dataclass
class Entry:
    kind: int
    encoded: bytes
    # Of a record.
    stream: int = 0
    producers: tuple = ()
    payload: bytes = b""
    # In the file.
    payload_offset: int = 0

    @property
    def is_record(self):
        return self.kind == _RECORD


class _Cursor:

    def __init__(self, data):
        self.data, self.at = data, 0

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def number(self):
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value

    def numbers(self, count):
        return [self.number() for _ in range(count)]


def _entry(cursor):
    """The next entry, and the size of its gradient."""
    start, kind = cursor.at, cursor.byte()
    stream, producers, payload = 0, [], 0
    if kind == _SHARD_BEGIN:
        stream, *_, length = cursor.numbers(5)
        cursor.at += length
    elif kind == _RECORD:
        stream, flags = cursor.number(), cursor.byte()
        for _ in range(cursor.number()):
            push_flags = cursor.byte()
            producers.append(cursor.number())
            cursor.numbers(4 if push_flags & _IS_OF_GROUPS_STEP else 6)
        cursor.at += 8 * bool(flags & 2) + 8 * bool(flags & 4)
        if flags & 8:
            cursor.number()
        if flags & 16:
            cursor.byte()
            payload = cursor.number()
            cursor.at += 4
    elif kind == _DIGEST:
        stream = cursor.number()
        cursor.at += 8
    return Entry(kind, cursor.data[start:cursor.at], stream, tuple(producers)), payload


def read(path):
    """The header, and the blocks: lists of entries."""
    with open(path, "rb") as file:
        data = file.read()
    blocks, at = [], _HEADER_BYTES
    while at < len(data):
        length, checksum, _ = struct.unpack_from("<III", data, at)
        encoded = data[at + 12:at + 12 + length]
        assert wire.crc32c(encoded) == checksum, at
        at += 12 + length
        cursor, block = _Cursor(encoded), []
        while cursor.at < length:
            entry, payload = _entry(cursor)
            entry.payload, entry.payload_offset = data[at:at + payload], at
            at += payload
            block.append(entry)
        blocks.append(block)
    return data[:_HEADER_BYTES], blocks


def write(path, header, blocks):
    with open(path, "wb") as file:
        file.write(header)
        for block in blocks:
            encoded = b"".join(entry.encoded for entry in block)
            head = struct.pack("<II", len(encoded), wire.crc32c(encoded))
            file.write(head + struct.pack("<I", wire.crc32c(head)) + encoded)
            file.write(b"".join(entry.payload for entry in block))
