# SPDX-License-Identifier: Apache-2.0
"""A reader of TensorBoard's event files, written from the description of the format alone."""

import struct


def _crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def _checked(data, masked):
    crc = _crc32c(data)
    if masked != struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF):
        raise ValueError(f"wrong checksum of {data.hex()}")
    return data


def _varint(data, at):
    number = shift = 0
    while True:
        number |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            return number, at


def _fields(data):
    """(number, value) of each field of a protobuf: bytes, or a number for a varint."""
    at, found = 0, []
    while at < len(data):
        key, at = _varint(data, at)
        if key & 7 == 0:
            value, at = _varint(data, at)
        else:
            if key & 7 == 2:
                size, at = _varint(data, at)
            else:
                size = {1: 8, 5: 4}[key & 7]
            value, at = data[at:at + size], at + size
        found.append((key >> 3, value))
    return found


def _event(data):
    fields = dict(_fields(data))
    scalars = {}
    for _, value in _fields(fields.get(5, b"")):
        parts = dict(_fields(value))
        scalars[parts[1].decode()] = struct.unpack("<f", parts[2])[0]
    return struct.unpack("<d", fields[1])[0], fields.get(2, 0), scalars


def read(path):
    """A list of (wall time, step, {tag: value}). Raises ValueError where the file breaks the
    format, or its last record is incomplete."""
    with open(path, "rb") as file:
        content = file.read()
    records, at = [], 0
    while at < len(content):
        size = struct.unpack("<Q", _checked(content[at:at + 8], content[at + 8:at + 12]))[0]
        at += 12
        records.append(_checked(content[at:at + size], content[at + size:at + size + 4]))
        at += size + 4
    if dict(_fields(records[0])).get(3) != b"brain.Event:2":
        raise ValueError(f"{path} does not begin with its version")
    return [_event(record) for record in records[1:]]
