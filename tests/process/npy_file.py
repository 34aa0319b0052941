# SPDX-License-Identifier: Apache-2.0
"""A reader and a writer of NPY files, written from the description of the format alone."""

import ast
import math
import struct


def read(path):
    """(type, shape, list of values). Raises ValueError where the file breaks the format."""
    with open(path, "rb") as file:
        content = file.read()
    if content[:8] != b"\x93NUMPY\x01\x00":
        raise ValueError(f"{path} is no NPY file of version 1.0")
    begin = 10 + struct.unpack("<H", content[8:10])[0]
    if begin % 64 != 0 or content[begin - 1:begin] != b"\n":
        raise ValueError(f"the array begins at {begin}")
    head = ast.literal_eval(content[10:begin].decode("ascii"))
    if set(head) != {"descr", "fortran_order", "shape"} or head["fortran_order"]:
        raise ValueError(f"{head}")
    code = {"<f4": "f", "<f2": "e", "<u8": "Q"}[head["descr"]]
    count = math.prod(head["shape"])
    return head["descr"], head["shape"], list(struct.unpack(f"<{count}{code}", content[begin:]))


def write(path, kind, shape, content):
    """`kind`: as in "<f4"; `content`: the bytes of the elements."""
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape!r}, }}"
    text += " " * (-(10 + len(text) + 1) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode("ascii")
                   + content)
