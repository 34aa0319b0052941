# SPDX-License-Identifier: Apache-2.0
"""The ABI of client/c/covey.h: recorded at a release, and compared with by tests/api/c_abi_test.py.

    tools/dev abi

records the header as it is, in client/c/covey.abi. Needs gcc, and abidw and abidiff of Debian's
abigail-tools.

abidw reads debug information. That of the library would hold all of the C++ behind the header, so
a library of empty functions is made from the header instead. It has the same ABI: C++ refuses a
definition whose types are not those of its declaration, and tests/api/c_symbols_test.py compares
the functions of the real library with the header.

Not compared: the numbers of enumerators, which client/c/layout_test.c holds, and `const` behind a
pointer, which no compiled program depends on.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

_ROOT = pathlib.Path(__file__).parents[1]
HEADER = _ROOT / "client/c/covey.h"
RECORD = _ROOT / "client/c/covey.abi"
_MAP = _ROOT / "client/c/covey.map"

MISSING = None if shutil.which("abidw") and shutil.which("abidiff") else (
    "needs abidw and abidiff: deploy/install-packages tests")

_DECLARATION = re.compile(r"^(COVEY_API [^;]*);", re.MULTILINE)
_STRUCT = re.compile(r"^typedef struct (\w+) {$", re.MULTILINE)

# Exit codes of abidiff are sums: 1 and 2 are failures, 4 a change. 4 stands for allowed changes, too.
_FAILED = 1 | 2
# A change of a struct that consists of new fields.
_INSERTION = re.compile(
    r"'struct \w+' changed:\n"
    r" +type size changed from (?P<bits>\d+) to \d+ \(in bits\)\n"
    r" +\d+ data member insertions?:\n"
    r"(?P<fields>( +'.*', at offset \d+ \(in bits\)\n?)+)")
_OFFSET = re.compile(r"at offset (\d+) \(in bits\)$", re.MULTILINE)


def structs(header):
    """The names of all structs whose fields a header shows."""
    return _STRUCT.findall(header)


def library(header, folder):
    """Compiles a library with the ABI of a header's text. Returns its path."""
    source, output = folder / "covey.c", folder / "libcovey.so"
    source.write_text(_DECLARATION.sub(r"\1 { __builtin_trap(); }", header))
    subprocess.run(["gcc", "-std=c11", "-g", "-fPIC", "-shared", f"-Wl,--version-script={_MAP}",
                    "-o", output, source], check=True)
    return output


def described(of_library):
    """What a library shows, in XML without anything that depends on the machine."""
    return subprocess.run(
        ["abidw", "--no-architecture", "--no-corpus-path", "--no-comp-dir-path", "--no-elf-needed",
         "--no-show-locs", of_library], capture_output=True, text=True, check=True).stdout


def breaks(record, of_library):
    """What has changed since a record that programs may notice, as abidiff's text; empty if nothing
    has. New functions do not count, nor do new fields at the end of a struct."""
    run = subprocess.run(
        ["abidiff", "--no-default-suppression", "--harmless", "--leaf-changes-only",
         "--no-added-syms", "--no-architecture", "--no-corpus-path", "--no-show-locs", record,
         of_library], capture_output=True, text=True)
    if run.returncode & _FAILED:
        raise RuntimeError(f"abidiff could not compare {record} with {of_library}: {run.stderr}")
    paragraphs = [text.strip("\n") for text in run.stdout.split("\n\n")]
    return "\n\n".join(text for text in paragraphs if text and " summary: " not in text
                       and not _grows_at_its_end(text))


def _grows_at_its_end(change):
    insertion = _INSERTION.fullmatch(change)
    return insertion is not None and all(
        int(offset) >= int(insertion["bits"]) for offset in _OFFSET.findall(insertion["fields"]))


def main():
    if MISSING:
        sys.exit(f"tools/c_abi.py: {MISSING}")
    with tempfile.TemporaryDirectory() as folder:
        RECORD.write_text(described(library(HEADER.read_text(), pathlib.Path(folder))))


if __name__ == "__main__":
    main()
