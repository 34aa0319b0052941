# SPDX-License-Identifier: Apache-2.0
"""A reader and a writer of safetensors files, written from the description of the format alone."""

import json
import math
import struct

# A type's bytes per element, and how its bytes become floats.
_TYPES = {
    "F32": (4, lambda data: struct.unpack(f"<{len(data) // 4}f", data)),
    "F16": (2, lambda data: struct.unpack(f"<{len(data) // 2}e", data)),
    "BF16": (2, lambda data: [
        struct.unpack("<f", b"\0\0" + data[at:at + 2])[0] for at in range(0, len(data), 2)]),
}


def read(path):
    """(tensors, metadata): by name (type, shape, list of values). Raises ValueError where the
    file breaks the format."""
    with open(path, "rb") as file:
        content = file.read()
    length = struct.unpack("<Q", content[:8])[0]
    head = json.loads(content[8:8 + length])
    data = content[8 + length:]
    metadata = head.pop("__metadata__", {})
    tensors, end = {}, 0
    for name, entry in sorted(head.items(), key=lambda item: item[1]["data_offsets"]):
        begin, size = entry["data_offsets"][0], _TYPES[entry["dtype"]][0]
        if begin != end:
            raise ValueError(f"{name} begins at {begin}, after {end}")
        end = entry["data_offsets"][1]
        if end - begin != size * math.prod(entry["shape"]):
            raise ValueError(f"{name} has {end - begin} bytes for {entry['shape']}")
        values = _TYPES[entry["dtype"]][1](data[begin:end])
        tensors[name] = (entry["dtype"], entry["shape"], list(values))
    if end != len(data):
        raise ValueError(f"{len(data) - end} bytes after the last tensor")
    return tensors, metadata


def write(path, tensors):
    """Tensors by name: (type, shape, bytes)."""
    head, data = {}, b""
    for name, (kind, shape, content) in tensors.items():
        head[name] = {"dtype": kind, "shape": shape,
                      "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(head).encode("utf-8")
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)
