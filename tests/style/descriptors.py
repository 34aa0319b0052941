# SPDX-License-Identifier: Apache-2.0
"""What protoc reads in .proto files: a line of text for each field, value of an enum and method."""

import os
import subprocess
import tempfile

# Names of FieldDescriptorProto.Type; messages and enums stand there with their own names.
_TYPES = ("? double float int64 uint64 int32 fixed64 fixed32 bool string group message bytes uint32 "
          "enum sfixed32 sfixed64 sint32 sint64").split()
_REPEATED = 3
# All of them: no range ends later.
_NUMBERS_END = 1 << 29


def lines_of(files):
    """Reads a Tree's .proto files.

    Returns ({(heading, number): line}, {heading: [(first, end) of reserved numbers]}). A heading is
    "message NAME", "enum NAME" or "service NAME"; of a service, the "numbers" are names of methods.
    """
    lines, reserved = {}, {}
    for file in _Message(_compiled(files)).messages(1):
        package = file.text(2)
        for message in file.messages(4):
            _add_message(message, package, lines, reserved)
        for enum in file.messages(5):
            _add_enum(enum, package, lines, reserved)
        for service in file.messages(6):
            heading = f"service {package}.{service.text(1)}"
            reserved[heading] = []
            for method in service.messages(2):
                kinds = ["stream " * method.number(field) for field in (5, 6)]
                lines[heading, method.text(1)] = (
                    f"{method.text(1)}: {kinds[0]}{method.text(2)[1:]} -> "
                    f"{kinds[1]}{method.text(3)[1:]}")
    return lines, reserved


def _compiled(files):
    """A FileDescriptorSet, serialized."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as folder:
        paths = files.paths(".proto")
        for path in paths:
            os.makedirs(os.path.join(folder, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(folder, path), "w", encoding="utf-8") as file:
                file.write(files.text(path))
        out = os.path.join(folder, "descriptors")
        subprocess.run(["protoc", f"--descriptor_set_out={out}", "--proto_path=.", *paths],
                       cwd=folder, check=True)
        with open(out, "rb") as file:
            return file.read()


def _add_message(message, scope, lines, reserved):
    name = f"{scope}.{message.text(1)}"
    heading = f"message {name}"
    reserved[heading] = [(entry.number(1), entry.number(2)) for entry in message.messages(9)]
    oneofs = [oneof.text(1) for oneof in message.messages(8)]
    for field in message.messages(2):
        words = [f"{field.number(3)}:", field.text(6)[1:] or _TYPES[field.number(5)], field.text(1)]
        if field.number(4) == _REPEATED:
            words.insert(1, "repeated")
        elif field.number(17):
            words.insert(1, "optional")
        elif field.has(9):
            words += ["in", oneofs[field.number(9)]]
        lines[heading, field.number(3)] = " ".join(words)
    for nested in message.messages(3):
        _add_message(nested, name, lines, reserved)
    for enum in message.messages(4):
        _add_enum(enum, name, lines, reserved)


def _add_enum(enum, scope, lines, reserved):
    heading = f"enum {scope}.{enum.text(1)}"
    # Unlike the ranges of messages, these contain their ends.
    reserved[heading] = [(entry.number(1), min(entry.number(2) + 1, _NUMBERS_END))
                         for entry in enum.messages(4)]
    for value in enum.messages(2):
        lines[heading, value.number(2)] = f"{value.number(2)}: {value.text(1)}"


class _Message:
    """A serialized message of google/protobuf/descriptor.proto, whose fields have these kinds only:
    numbers (not negative), texts and messages."""

    def __init__(self, data):
        self._fields = {}
        at = 0
        while at < len(data):
            key, at = _varint(data, at)
            if key & 7 == 0:
                value, at = _varint(data, at)
            elif key & 7 == 2:
                size, at = _varint(data, at)
                value, at = data[at:at + size], at + size
            else:
                raise ValueError(f"protoc wrote a field of kind {key & 7}")
            self._fields.setdefault(key >> 3, []).append(value)

    def has(self, field):
        return field in self._fields

    def number(self, field):
        return self._fields.get(field, [0])[-1]

    def text(self, field):
        return self._fields.get(field, [b""])[-1].decode()

    def messages(self, field):
        return [_Message(data) for data in self._fields.get(field, [])]


def _varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at
