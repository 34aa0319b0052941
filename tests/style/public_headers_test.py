# SPDX-License-Identifier: Apache-2.0
"""Public headers are small: they include no internals, directly or through others."""

import posixpath
import re

from tests import report
from tests.style import tree

# Every header directly in these folders is public; their internals are in folders below them.
_PUBLIC_FOLDERS = ("client", "worker")
# What a public header may include besides the other public ones, the standard library and Abseil.
_PUBLIC_BASE = re.compile(
    r"^(common/base/[^/]+\.h"
    r"|common/cluster/ids\.h"  # the strong types of arguments and results
    r"|common/tensor/wire_format\.h"  # an enum among the options of a push
    r"|common/vectors/vector_function\.h"  # what calls and queries consist of
    r"|common/tensor/(element_span|reduce_op)\.h"  # arguments and an option of a collective
    r"|common/collective/(algorithm|part_range)\.h"  # options and parts of a collective
    r"|common/runtime/process_priority\.h"  # an option of a worker
    r")$"
)
# The one message that is part of an interface: a training program fills in a table's definition.
_EXCEPTIONS = {("worker/hybrid_step.h", "proto/table.pb.h")}
# Programs that live in this repository and use the libraries as any other program does.
_USERS = ("client/cli/", "client/examples/", "worker/examples/")
_INTERNALS = (
    "client/engine/",
    "client/testing/",
    *(
        f"worker/{room}/"
        for room in ("collective", "data", "engine", "group", "hybrid", "layout", "testing", "update")
    ),
)
_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def public_headers(files):
    return [path for path in files.paths(".h") if posixpath.dirname(path) in _PUBLIC_FOLDERS]


def exposed_internals(files):
    """Internals that a program would compile, with the chain of includes that leads to them."""
    found = []
    public = set(public_headers(files))
    for start in sorted(public):
        seen, queue = {start}, [[start]]
        while queue:
            chain = queue.pop(0)
            for _, line in files.lines(chain[-1]):
                match = _INCLUDE.match(line)
                if not match or match.group(1) in seen or match.group(1).startswith("absl/"):
                    continue
                included = match.group(1)
                if (chain[-1], included) in _EXCEPTIONS:
                    continue
                seen.add(included)
                if included not in public and not _PUBLIC_BASE.match(included):
                    steps = " -> ".join([*chain[1:], included])
                    found.append(
                        f"{start}: is public and includes {steps}; "
                        "declare the type and include its header in the .cc file"
                    )
                elif included in files:
                    queue.append([*chain, included])
    return found


def programs_inside(files):
    """Programs that include headers reserved to the libraries."""
    found = []
    for path in files.paths(".h", ".cc"):
        if not path.startswith(_USERS):
            continue
        for number, line in files.lines(path):
            match = _INCLUDE.match(line)
            if match and match.group(1).startswith(_INTERNALS):
                found.append(
                    f"{path}:{number}: includes {match.group(1)}; use the public headers in client/ and worker/"
                )
    return found


class PublicHeadersTest(tree.StyleTest):
    def test_the_project(self):
        files = tree.Tree.of_workspace()
        self.assertIn("client/parameter_client.h", public_headers(files))
        self.assertIn("worker/worker.h", public_headers(files))
        self.assert_clean(exposed_internals(files) + programs_inside(files))

    def test_finds_an_internal_behind_another_public_header(self):
        files = tree.Tree(
            {
                "client/a.h": '#include <map>\n#include "absl/x.h"\n#include "client/b.h"\n',
                "client/b.h": '#include "common/base/log.h"\n#include "client/engine/c.h"\n',
                "client/engine/c.h": '#include "proto/d.pb.h"\n',
                "common/base/log.h": '#include "proto/e.pb.h"\n',
                "client/b.cc": '#include "proto/d.pb.h"\n',
            }
        )
        self.assert_found(
            [
                "client/a.h: is public and includes client/b.h -> client/engine/c.h",
                "client/a.h: is public and includes client/b.h -> common/base/log.h -> proto/e.pb.h",
                "client/b.h: is public and includes client/engine/c.h",
                "client/b.h: is public and includes common/base/log.h -> proto/e.pb.h",
            ],
            exposed_internals(files),
        )

    def test_finds_a_program_that_uses_internals(self):
        files = tree.Tree(
            {
                "client/cli/a.cc": '#include "client/engine/b.h"\n#include "client/handle.h"\n',
                "client/handle.cc": '#include "client/engine/b.h"\n',
            }
        )
        self.assert_found(["client/cli/a.cc:1"], programs_inside(files))


if __name__ == "__main__":
    report.main()
