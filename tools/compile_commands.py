# SPDX-License-Identifier: Apache-2.0
"""Writes compile_commands.json and .clangd, from which editors know how each file is compiled.

Reads the compile actions, as `bazel aquery --output=jsonproto` prints them, from standard input. Run it as
`tools/dev compdb`.
"""

import json
import os
import sys

# Flags of g++ that clangd does not know, or that would only repeat the compiler's errors.
_CLANGD = """# Written by tools/dev compdb.
CompileFlags:
  CompilationDatabase: .
  Remove: [-fno-canonical-system-headers, -Werror, -f*semantic-interposition]
"""


def entries(actions, folder):
    """One entry per source file; the first action that compiles it counts."""
    found = {}
    for action in actions:
        arguments = action["arguments"]
        if "-c" not in arguments:
            continue
        source = arguments[arguments.index("-c") + 1]
        if not source.startswith(("external/", "bazel-out/")):
            found.setdefault(
                source, {"directory": folder, "file": source, "arguments": arguments})
    return [found[source] for source in sorted(found)]


def main():
    commands = entries(json.load(sys.stdin).get("actions", []), os.getcwd())
    if not commands:
        sys.exit("tools/compile_commands.py: no compile action; its input is that of tools/dev compdb")
    with open("compile_commands.json", "w", encoding="utf-8") as file:
        json.dump(commands, file, indent=1)
    with open(".clangd", "w", encoding="utf-8") as file:
        file.write(_CLANGD)
    print(f"compile_commands.json: {len(commands)} files", file=sys.stderr)


if __name__ == "__main__":
    main()
