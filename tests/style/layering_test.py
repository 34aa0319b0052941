# SPDX-License-Identifier: Apache-2.0
"""Which folder may include which: the rule of the package groups in //:BUILD, for #include lines.
"""

import posixpath
import re

from tests import report
from tests.style import tree

_BASE = ["proto", "common/base", "common/fuzz"]
_CLUSTER = _BASE + ["common/cluster"]
_SECURITY = _CLUSTER + ["common/security"]
_NET = _SECURITY + ["common/net"]
_RUNTIME = _NET + ["common/trace", "common/runtime"]
# Mathematics and time, which only the roles use.
_TENSOR = _BASE + ["common/tensor"]
_ROLE = _RUNTIME + ["common/tensor", "common/optimizer", "common/gpu", "common/contract",
                    "common/grouping", "common/table", "common/collective", "common/simulation",
                    "common/faults", "common/store", "common/snapshot", "common/recording",
                    "common/format", "common/vectors", "common/http", "common/metrics"]

# Folder -> the folders it may include besides itself. `tests` may include everything.
_MAY_INCLUDE = {
    "proto": [],
    "common/base": [],
    "common/fuzz": ["common/base"],
    "common/cluster": _BASE,
    "common/net": _SECURITY,
    "common/runtime": _NET + ["common/trace"],
    "common/trace": _NET,
    "common/tensor": _BASE,
    "common/format": _TENSOR,
    "common/optimizer": _TENSOR,
    "common/gpu": _TENSOR + ["common/optimizer"],
    "common/collective": _CLUSTER,
    "common/contract": _CLUSTER,
    "common/grouping": _CLUSTER,
    "common/security": _CLUSTER,
    "common/table": _CLUSTER + ["common/tensor", "common/optimizer", "common/contract"],
    "common/store": _NET,
    "common/snapshot": _CLUSTER + ["common/store", "common/table", "common/optimizer"],
    "common/vectors": _CLUSTER + ["common/tensor"],
    "common/recording": _CLUSTER + ["common/store", "common/tensor", "common/vectors"],
    "common/simulation": _BASE,
    "common/faults": _BASE,
    "common/http": _BASE,
    "common/metrics": _RUNTIME + ["common/http"],
    "scheduler": _ROLE,
    "server": _ROLE,
    # A command applies recordings as servers do; a program that links the client does not.
    "client/cli": _ROLE + ["client", "server"],
    # The interface in C shows both libraries, the client and the worker.
    "client/c": _ROLE + ["client", "worker"],
    "client/python": ["client/c"],
    "client": _ROLE,
    "worker": _ROLE + ["client"],
}

# The rooms of a folder, lowest first: a room may include itself, those before it, and what _SHARED
# names; the folder's own files, which stand last, may include them all. Tests and fixtures may
# include any.
_ROOMS = {
    "worker": ["collective", "layout", "data", "group", "update", "hybrid", "engine", "."],
    "scheduler": ["state", "topology", "groups", "nodes", "placement", "tables", "work", "trace",
                  "log", "rpc", "."],
    "server": ["table", "sparse", "replication", "recording", "shard", "snapshot", "replay", "."],
    "common/net": ["seal", "zmq", "grpc", "."],
    "client/engine": ["requests", "sending", "durability", "."],
    "client/cli": ["console", "process", "scheduler", "lookup", "model", "snapshot", "status", "rows",
                   "certificates", "replay", "report", "run", "scale", "bench", "chaos", "simulate", "."],
    "tests/sim": ["network", "process", "config", "faults", "cluster", "checkers", "workloads",
                  "."],
}
# Plain values, and pure functions about these, in a folder's own files that its rooms read.
_SHARED = ["client/engine/operation.h",
           "common/net/control_methods.h", "common/net/little_endian.h", "common/net/message.h",
           "common/net/scheduler_failover.h", "common/net/wire.h",
           "worker/config.h", "worker/gradient_noise.h", "worker/hybrid_options.h", "worker/progress.h"]

# A role that builds upon another one includes that role's public headers, which stand directly in
# its folder, and the internals listed here.
_BUILT_UPON = {
    # A worker is a client whose loop also runs collectives: one registration, one route to each
    # server, one numbering of requests, one limit of bytes in flight. So it drives the client's
    # engine itself, on its own loop; the public interface blocks and has a loop of its own.
    ("worker", "client"): ["client/engine/operation.h", "client/engine/request_engine.h",
                           "client/engine/client_actor.h", "client/engine/connection.h"],
    # covey replay applies recorded updates, and covey snapshot export those of logs: with any other
    # code than that of servers, equal bits would say nothing.
    ("client/cli", "server"): ["server/replay/replay.h", "server/replay/stored_content.h"],
}
# Of these, the headers directly in the folder are public.
_LIBRARIES = ["client"]

# An actor, or a pure function about the cluster, can be replayed only if it reads nothing but its
# arguments. These headers, and every header of ours that includes one, read more.
_IMPURE_SYSTEM = re.compile(
    r"^(grpc|zmq|thread$|mutex$|condition_variable$|future$|chrono$|ctime$|fstream$|filesystem$"
    r"|iostream$|cstdio$|unistd\.h|sys/|cuda|CLI/|absl/synchronization|absl/time/clock|absl/flags)"
)
_IMPURE_OURS = re.compile(
    r"^common/(base/(mutex|bounded_queue|set_once|clock)\.h"
    r"|net/(transport|zmq|grpc)|runtime/(event_loop|process_main))"
)

_PURE = ("common/cluster/", "common/contract/", "common/grouping/", "common/collective/")

_INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)')


def _includes(files, path):
    """(line, ours or None, system or None) of each #include."""
    for number, line in files.lines(path):
        match = _INCLUDE.match(line)
        if match:
            yield number, match.group(1), match.group(2)


def _folder(path):
    for folder in _MAY_INCLUDE:
        if path.startswith(folder + "/"):
            return folder
    return path.split("/")[0]


def wrong_directions(files):
    found = []
    for path in files.paths(".h", ".cc", ".cu"):
        here = _folder(path)
        if here not in _MAY_INCLUDE:
            continue
        for number, ours, _ in _includes(files, path):
            there = _folder(ours) if ours else here
            if there in [*_MAY_INCLUDE, "tests"] and there not in [here, *_MAY_INCLUDE[here]]:
                found.append(
                    f"{path}:{number}: {here} must not include {ours}; "
                    "move what both need to a folder of common/, or send a message"
                )
    return found


def _room(path):
    """(role, number of the room) of a file; None where there are no rooms."""
    for role, rooms in _ROOMS.items():
        if not path.startswith(role + "/"):
            continue
        inside = posixpath.dirname(path)[len(role) + 1:] or "."
        for number, room in enumerate(rooms):
            if inside == room or inside.startswith(room + "/"):
                return role, number
    return None


def wrong_rooms(files):
    found = []
    for path in files.paths(".h", ".cc", ".cu"):
        here = _room(path)
        if here is None or re.search(r"_(test|bench|fuzz)\.cc$", path):
            continue
        for number, ours, _ in _includes(files, path):
            there = _room(ours) if ours and ours not in _SHARED else None
            if there and there[0] == here[0] and there[1] > here[1]:
                rooms = _ROOMS[here[0]]
                found.append(
                    f"{path}:{number}: room {rooms[here[1]]} of {here[0]}/ must not include {ours}; "
                    f"the rooms from low to high are {', '.join(rooms)}"
                )
    return found


def entered_internals(files):
    """Includes of another role's internals that are not meant for this one."""
    found = []
    for path in files.paths(".h", ".cc", ".cu"):
        for (user, role), internals in _BUILT_UPON.items():
            if not path.startswith(user + "/"):
                continue
            for number, ours, _ in _includes(files, path):
                is_public = role in _LIBRARIES and posixpath.dirname(ours or "") == role
                if (ours and ours.startswith(role + "/") and ours not in internals
                        and not is_public):
                    found.append(
                        f"{path}:{number}: {user} must not include {ours}, which is internal to "
                        f"{role}; of its internals {user} may include {', '.join(internals)}"
                    )
    return found


def lost_rooms(files):
    """Rooms, folders and headers that this test names but that do not exist."""
    named = [*_MAY_INCLUDE, *(posixpath.join(role, room).removesuffix("/.")
                              for role, rooms in _ROOMS.items() for room in rooms)]
    known = {posixpath.dirname(path) for path in files.paths("BUILD")}
    return [f"tests/style/layering_test.py names {folder}, which has no BUILD file"
            for folder in named if folder not in known
            and not any(path.startswith(folder + "/") for path in known)] + [
        f"tests/style/layering_test.py names {header}, which does not exist"
        for header in [*_SHARED, *(h for headers in _BUILT_UPON.values() for h in headers)]
        if header not in files]


def impure_actors(files):
    """Files that must be replayable, with the chain of includes that prevents it."""
    found = []
    for path in files.paths("_actor.h", "_actor.cc"):
        if _folder(path) in _MAY_INCLUDE:
            found += _impure_chains(files, path)
    for path in files.paths(".h", ".cc"):
        if path.startswith(_PURE) and not path.endswith("_test.cc"):
            found += _impure_chains(files, path)
    return found


def _impure_chains(files, start):
    found, seen, queue = [], {start}, [[start]]
    while queue:
        chain = queue.pop(0)
        for _, ours, system in _includes(files, chain[-1]):
            included = ours or system
            if (_IMPURE_OURS if ours in files else _IMPURE_SYSTEM).match(included):
                steps = " -> ".join([*chain[1:], included])
                found.append(
                    f"{start}: must be replayable, but includes {steps}; "
                    "take the value as an argument or send a message"
                )
            elif ours in files and ours not in seen:
                seen.add(ours)
                queue.append([*chain, ours])
    return found


def missing_files(files):
    """Includes of ours are written from the workspace root, so that a reader can open them."""
    found = []
    for path in files.paths(".h", ".cc", ".cu"):
        for number, ours, _ in _includes(files, path):
            if not ours or ours in files or re.sub(r"(\.grpc)?\.pb\.h$", ".proto", ours) in files:
                continue
            beside = posixpath.join(posixpath.dirname(path), ours)
            if beside in files:
                found.append(f'{path}:{number}: includes "{ours}"; write "{beside}"')
            elif _folder(ours) in [*_MAY_INCLUDE, "tests"]:
                found.append(f"{path}:{number}: there is no file {ours}; remove the include")
    return found


class LayeringTest(tree.StyleTest):
    def test_the_project(self):
        files = tree.Tree.of_workspace()
        self.assert_clean(wrong_directions(files) + wrong_rooms(files)
                          + entered_internals(files) + lost_rooms(files)
                          + impure_actors(files) + missing_files(files))

    def test_finds_a_wrong_direction(self):
        files = tree.Tree(
            {
                "common/base/bytes.h": '#include "common/net/message.h"\n',
                "server/a.cc": '#include "scheduler/b.h"\n#include "common/net/message.h"\n',
                "worker/a.cc": '#include "client/b.h"\n#include "server/b.h"\n',
                "client/a_test.cc": '#include "client/c.h"\n#include "tests/sim/c.h"\n',
                "tests/sim/a.cc": '#include "server/b.h"\n',
            }
        )
        self.assert_found(
            ["client/a_test.cc:2", "common/base/bytes.h:1", "server/a.cc:1", "worker/a.cc:2"],
            wrong_directions(files),
        )

    def test_finds_a_wrong_room(self):
        files = tree.Tree(
            {
                "server/table/a.h": '#include "server/shard/shard.h"\n',
                "server/shard/b.h": '#include "server/table/a.h"\n#include "server/config.h"\n',
                "server/shard/b_test.cc": '#include "server/shard_actor.h"\n',
                "server/c.h": '#include "server/shard/b.h"\n',
                "worker/hybrid/d.h": '#include "worker/config.h"\n',
            }
        )
        self.assert_found(["server/shard/b.h:2", "server/table/a.h:1"], wrong_rooms(files))

    def test_finds_entered_internals(self):
        files = tree.Tree(
            {
                "worker/a.h": '#include "client/handle.h"\n',
                "worker/group/b.h": '#include "client/engine/request_engine.h"\n',
                "worker/group/c.h": '#include "client/engine/sending/send_queue.h"\n',
                "worker/group/c_test.cc": '#include "client/testing/fixture.h"\n',
                "client/cli/replay/d.cc": '#include "server/replay/replay.h"\n',
                "client/cli/replay/e.cc": '#include "server/shard_actor.h"\n',
                "client/engine/d.h": '#include "client/engine/sending/send_queue.h"\n',
            }
        )
        self.assert_found(["client/cli/replay/e.cc:1", "worker/group/c.h:1",
                           "worker/group/c_test.cc:1"],
                          entered_internals(files))

    def test_finds_a_lost_room(self):
        self.assertIn("tests/style/layering_test.py names server/table, which has no BUILD file",
                      lost_rooms(tree.Tree({"server/BUILD": "", "server/shard/BUILD": ""})))

    def test_finds_an_impure_actor(self):
        files = tree.Tree(
            {
                "server/shard_actor.h": '#include <vector>\n#include "server/table.h"\n',
                "server/table.h": "#include <mutex>\n",
                "server/loop.h": "#include <thread>\n",
                "common/cluster/planner.cc": '#include "common/net/zmq_transport.h"\n',
                "common/net/zmq_transport.h": "",
            }
        )
        self.assert_found(["server/table.h -> mutex", "zmq_transport.h"], impure_actors(files))

    def test_finds_a_path_that_is_not_from_the_root(self):
        files = tree.Tree(
            {
                "server/a.cc": '#include "b.h"\n#include "server/gone.h"\n',
                "server/b.h": '#include "proto/c.grpc.pb.h"\n#include "absl/x.h"\n',
                "proto/c.proto": "",
            }
        )
        self.assert_found(['a.cc:1: includes "b.h"; write "server/b.h"', "no file server/gone.h"],
                          missing_files(files))


if __name__ == "__main__":
    report.main()
