# SPDX-License-Identifier: Apache-2.0
"""Our readers of safetensors and NPY files agree with the packages of these formats for Python.

Skipped where `safetensors` and `numpy` are not installed. With a folder of installed packages:
bazel test --test_env=PYTHONPATH=FOLDER //tests/process:formats_test
"""

import io
import json
import random
import struct
import subprocess
import unittest

from tests import report
from tests.process import program

_MISSING = ""
try:
    import numpy
    import safetensors
    import safetensors.numpy
except ImportError as missing:
    _MISSING = f"no package {missing.name} for Python: pip install numpy safetensors"

_READER = program.built("tests/process/format_reader")
_FILES = 60
_MUTATIONS = 300
_TYPES = ["bool", "int8", "uint8", "int16", "uint16", "float16", "int32", "uint32", "float32",
          "float64", "int64", "uint64", "complex64"]
_PIECES = [b"{", b"}", b"[", b"]", b",", b":", b'"', b"0", b"1", b"9", b"-", b"e3", b" ", b"\n",
           b"\0", b"F16", b"shape", b"(", b")", b"'", b"L", b"True", b"<f2", b"\\u0061"]


def _ours(kind, content):
    run = subprocess.run([_READER, kind], input=content, capture_output=True, check=True)
    return run.stdout.decode()


def _theirs_safetensors(content):
    """What the package reads, in the words of our reader."""
    size = struct.unpack("<Q", content[:8])[0]
    head = json.loads(content[8:8 + size])
    parts = []
    tensors = dict(safetensors.deserialize(content))
    for name in sorted(tensors, key=lambda name: (head[name]["data_offsets"], name)):
        begin, end = (8 + size + offset for offset in head[name]["data_offsets"])
        tensor = tensors[name]
        if bytes(tensor["data"]) != content[begin:end]:
            raise ValueError(f"{name} is not from {begin} to {end}")
        shape = ",".join(str(extent) for extent in tensor["shape"])
        parts.append(f"{name} {tensor['dtype']} [{shape}] {begin}-{end}")
    notes = head.get("__metadata__") or {}
    return "; ".join(parts + [f"{name}={notes[name]}" for name in sorted(notes)])


def _theirs_npy(content):
    file = io.BytesIO(content)
    array = numpy.load(file, allow_pickle=False)
    if file.read():
        raise ValueError("bytes after the array")
    shape = ",".join(str(extent) for extent in array.shape)
    return f"{array.dtype.name} [{shape}] {len(content) - array.nbytes}"


def _mutated(content, draw):
    """With a change within the first 100 bytes after the length of the text."""
    changed = bytearray(content)
    for _ in range(draw.randint(1, 2)):
        at = draw.randrange(8, min(len(changed), 110))
        kind = draw.randrange(3)
        if kind == 0:
            changed[at] = draw.choice(b"0123456789FU{}[](),:'\" ")
        elif kind == 1:
            del changed[at]
            changed.insert(draw.randrange(8, min(len(changed), 110)), ord(" "))
        else:
            piece = draw.choice(_PIECES)
            changed[at:at + len(piece)] = piece
    return bytes(changed)


@unittest.skipIf(_MISSING, _MISSING)
class FormatsTest(unittest.TestCase):

    def array(self, draw, types):
        shape = [draw.choice([0, 1, 1, 2, 3, 5]) for _ in range(draw.randrange(5))]
        return numpy.ones(shape, dtype=draw.choice(types))

    def safetensors_file(self, draw):
        names = draw.sample(["w", "a/b", "../c", "é", 'x"y', "layer.0.weight", "", "z" * 300],
                            draw.randrange(6))
        notes = draw.choice([None, {"format": "pt"}, {"b": "1\n2", "a": "ü"}])
        return safetensors.numpy.save({name: self.array(draw, _TYPES) for name in names}, notes)

    def npy_file(self, draw):
        file = io.BytesIO()
        numpy.lib.format.write_array(file, self.array(draw, ["<f4", "<f2"]),
                                     version=draw.choice([(1, 0), (2, 0), (3, 0)]))
        return file.getvalue()

    def agree(self, kind, make, theirs):
        for seed in range(_FILES):
            content = make(random.Random(seed))
            self.assertEqual(theirs(content), _ours(kind, content), f"seed {seed}")

    def agree_on_mutations(self, kind, make, theirs):
        """Whatever ours accepts, theirs accepts with the same content."""
        accepted = 0
        for seed in range(_MUTATIONS):
            draw = random.Random(seed)
            content = _mutated(make(draw), draw)
            ours = _ours(kind, content)
            if not ours.startswith("refused: "):
                accepted += 1
                self.assertEqual(theirs(content), ours, f"seed {seed}: {content[:200]}")
        self.assertGreater(accepted, 0)

    def test_safetensors(self):
        self.agree("safetensors", self.safetensors_file, _theirs_safetensors)

    def test_npy(self):
        self.agree("npy", self.npy_file, _theirs_npy)

    def test_mutated_safetensors(self):
        self.agree_on_mutations("safetensors", self.safetensors_file, _theirs_safetensors)

    def test_mutated_npy(self):
        self.agree_on_mutations("npy", self.npy_file, _theirs_npy)


if __name__ == "__main__":
    report.main()
