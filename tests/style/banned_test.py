# SPDX-License-Identifier: Apache-2.0
"""Banned calls, their replacements, and the exemptions."""

import fnmatch
import re

from tests import report
from tests.style import tree

_CODE = (".h", ".cc", ".cu")


class Ban:
    """One banned thing.

    pattern: matched against code without comments and literals.
    instead: the replacement, shown with the violation.
    allowed: path pattern -> the reason why code there may use it. An unused exemption is a
    violation.
    where: path prefixes that the ban covers; empty = everywhere.
    """

    def __init__(self, name, pattern, instead, allowed=None, where=()):
        self.name = name
        self.pattern = re.compile(pattern)
        self.instead = instead
        self.allowed = allowed or {}
        self.where = where


_ROLES = ("common/cluster/", "common/contract/", "common/grouping/", "scheduler/", "server/", "client/", "worker/")

_BANS = [
    Ban(
        "sleep",
        r"\bsleep_(for|until)\b|\b(u|nano)?sleep\s*\(|\bSleepFor\b",
        "return a time from NextWake(), or wait for the event with a deadline",
    ),
    Ban(
        "clock",
        r"\b(system|steady|high_resolution)_clock\b|\babsl::(Now|GetCurrentTimeNanos)\b"
        r"|\bclock_gettime\b|\bgettimeofday\b|\bstd::time\s*\(",
        "take `now` as an argument",
        allowed={
            "client/cli/certificates/certificates_command.cc": "dates certificates",
            "client/cli/run/local_cluster.cc": "dates the curves for TensorBoard",
            "client/cli/run/run_command.cc": "dates the report",
            "client/cli/snapshot/snapshot_import.cc": "dates what it imports",
            "common/security/tls_credentials_test.cc": "makes certificates that gRPC takes for valid",
            "common/security/wall_clock.cc": "where `now` comes from, for certificates",
            "common/base/clock.cc": "where `now` comes from",
            "scheduler/large_cluster_test.cc": "measures processor time",
            "tests/process/many_nodes.cc": "measures processor time",
            "scheduler/main.cc": "dates snapshots",
            "tests/process/outage_probe.cc": "measures",
            "server/sparse/sparse_shard_bench.cc": "measures pauses",
            "tests/soak/thread_seconds.h": "measures",
            "tests/relay/relay.cc": "is a loop of its own, around devices",
        },
    ),
    Ban(
        "environment",
        r"\b(secure_)?getenv\b|\bsetenv\b",
        "take the value from the role's config",
        allowed={
            "client/c/definitions*.cc": "where a config of the library takes its values from",
            "tests/process/disk_faults.cc": "is loaded into a program that knows nothing of it",
            "common/base/planted_bug_switch.cc": "tests plant a bug in a program as it is",
            "common/runtime/config_file.cc": "where a config takes its values from",
            "common/runtime/config_reload.cc": "where a config takes its values from, again",
            "common/runtime/process_main.cc": "reads how to log, before there is a config",
            "common/runtime/supervisor_notice*.cc": "finds the supervisor that has started the process",
            "common/runtime/topology_labels.cc": "reads what Slurm and Kubernetes say of a process",
            "scheduler/main.cc": "tells gRPC which ciphers to take",
        },
    ),
    Ban(
        "random",
        r"\bs?rand\s*\(|\brandom_device\b|\bmt19937|\bstd::\w+_distribution\b|\babsl::BitGen\b",
        "use common/base/random.h, whose numbers are the same everywhere",
    ),
    Ban(
        "thread",
        r"\bstd::j?thread\b|\bstd::async\b|\bpthread_create\b",
        "write an actor and let an event loop run it",
        allowed={
            "common/http/http_server.*": "libevent brings its own loop",
            "common/runtime/event_loop.*": "one thread per loop",
            "common/store/store_thread.*": "a disk may take seconds, and no loop waits for it",
            "server/table/chunk_reserve.*": "new memory may take milliseconds, and no loop waits for it",
            "*_bench.cc": "plays the other side",
            "*_test.cc": "plays the other side",
        },
    ),
    Ban(
        "mutex",
        r"\bstd::(\w*mutex|lock_guard|unique_lock|scoped_lock|condition_variable\w*)\b"
        r"|\babsl::(Mutex|CondVar|\w*MutexLock)\b",
        "use common/base/mutex.h, which the thread-safety analysis and ThreadSanitizer understand",
        allowed={
            "common/base/mutex.h": "wraps it",
            "common/runtime/process_main_test.cc": "locks as gRPC does",
        },
    ),
    Ban(
        "shared state",
        r"\bMutexLock\b|\bCondVar\b|\bstd::atomic\b|\bBoundedQueue\b",
        "keep the state in one actor and send it messages",
        allowed={
            "client/cli/bench/limits/ring_limit.cc": "measures memory that two processes share",
            "client/cli/dashboard/dashboard_command.cc": "where the HTTP server's thread meets its loop",
            "client/c/objects.h": "where threads of a program in another language meet a worker or a cache",
            "client/engine/connection.*": "where the user's threads meet the client's loop",
            "scheduler/rpc/admission.cc": "gRPC's threads ask it before they trouble the loop",
            "scheduler/rpc/callers.cc": "gRPC's threads ask it whose call they bring",
            "scheduler/log/etcd/fake_etcd.h": "a server, for tests, on gRPC's threads",
            "scheduler/overload_test.cc": "plays many nodes at once",
            "server/table/chunk_reserve.*": "where loops take what its thread has made",
            "server/table/table_budget.*": "what the tables of all loops of a process take together",
            "server/token_bucket.*": "what all loops of a process receive and send together",
            "worker/data_source.cc": "where the program's thread meets the worker's loop",
            "worker/data_source_test.cc": "a scheduler, for tests, on gRPC's threads",
        },
        where=_ROLES,
    ),
    Ban("std::string_view", r"\bstd::string_view\b", "use absl::string_view, as Abseil does"),
    Ban(
        "std::unordered",
        r"\bstd::unordered_\w+",
        "use absl::btree_map when the order can be seen, absl::flat_hash_map when it cannot",
    ),
    Ban("using namespace", r"\busing\s+namespace\b", "name what you use"),
    Ban(
        "printing",
        r"\b(f|s|sn|v|vf)?printf\s*\(|\bf?puts\s*\(|\bstd::(cout|cerr|clog)\b",
        "use common/base/log.h for events, absl::StrFormat for text",
        allowed={
            "common/runtime/config_file.cc": "answers --print-config, and mistakes in flags",
            "client/examples/*.cc": "a program that people watch",
            "common/fuzz/replay.cc": "a program that people watch",
            "tests/outside/*.cc": "a program that people watch",
            "tests/process/bit_equality_*.cc": "what the test compares",
            "tests/process/many_nodes.cc": "what the test compares",
            "tests/process/examples_worker.cc": "the result, for `covey run`",
            "tests/sim/planted_bugs_test.cc": "how many seeds each bug took",
            "tests/soak/tuned_worker.cc": "what the test compares",
            "worker/examples/*/main.cc": "a program that people watch",
        },
    ),
    Ban(
        "files",
        r"\bfopen\s*\(|\bstd::[io]?fstream\b|\bstd::filesystem\b",
        "send the bytes to the actor that owns the disk, or take them as an argument",
        allowed={
            "*_test.cc": "plants files in its own temporary folder",
            "common/fuzz/libfuzzer.cc": "libFuzzer goes on from inputs in files",
            "common/fuzz/replay.cc": "reads inputs that failed",
            "tests/process/contract_worker.cc": "reads in a file which step is the last",
        },
    ),
    Ban(
        "bare new",
        r"(?<!operator )\bnew\s+[A-Za-z_:]|\bdelete\s+\w|\bmalloc\s*\(|\bfree\s*\(",
        "use std::make_unique or a container",
        allowed={
            "client/c/boundary.cc": "texts that a program in C releases",
            "common/base/buffer.cc": "owns aligned memory by a count of references",
            "common/base/log.cc": "leaks the logger, which other threads use while main returns",
            "common/net/zmq/zmq_part.cc": "libzmq keeps a plain pointer to the frame that it sends",
        },
    ),
    Ban(
        "exceptions",
        r"\bthrow\b|\btry\s*\{|\bcatch\s*\(",
        "return absl::Status; catch what a library throws where the library is called",
        allowed={
            "client/c/boundary*": "no exception may reach a program in C",
            "common/base/buffer*.cc": "out of memory, as operator new says it",
            "common/faults/fault_file.cc": "where yaml-cpp throws mistakes",
            "common/net/zmq/zmq_part.cc": "out of memory, as operator new says it",
            "client/cli/cluster/cluster_file.cc": "where yaml-cpp throws mistakes",
            "common/runtime/config_file.cc": "where yaml-cpp and CLI11 throw mistakes",
            "server/replication/shard_content*.cc": "a shard for which there is no memory fails alone",
        },
    ),
    Ban("assert", r"(?<!_)\bassert\s*\(", "use COVEY_CHECK, which stays on in production"),
]


# A constructor that only its own class may call must be called with new, into an owner.
_OWNED_NEW = re.compile(r"((?:_ptr<[^;(]*>|\bWrapUnique)\(\s*)new\b")


def banned_calls(files, bans):
    found, used = [], set()
    for path in files.paths(*_CODE):
        code = _OWNED_NEW.sub(r"\1", tree.code_only(files.text(path))).splitlines()
        for ban in bans:
            if ban.where and not path.startswith(ban.where):
                continue
            hits = [number for number, line in enumerate(code, 1) if ban.pattern.search(line)]
            exemption = next((key for key in ban.allowed if fnmatch.fnmatch(path, key)), None)
            if hits and exemption:
                used.add((ban.name, exemption))
            elif hits:
                wrong = f"{ban.name} is banned; instead: {ban.instead}"
                found += [f"{path}:{number}: {wrong}" for number in hits]
    for ban in bans:
        for key in ban.allowed:
            if (ban.name, key) not in used:
                found.append(f"{key}: needs no exemption from the ban of {ban.name}; remove it")
    return found


class BannedTest(tree.StyleTest):
    def test_the_project(self):
        self.assert_clean(banned_calls(tree.Tree.of_workspace(), _BANS))

    def test_every_ban_finds_its_violation(self):
        violations = {
            "sleep": "std::this_thread::sleep_for(x);",
            "clock": "auto now = std::chrono::steady_clock::now();",
            "environment": 'getenv("HOME");',
            "random": "std::uniform_int_distribution<int> d;",
            "thread": "std::thread t(f);",
            "mutex": "std::lock_guard<std::mutex> lock(m);",
            "shared state": "std::atomic<int> count;",
            "std::string_view": "std::string_view name;",
            "std::unordered": "std::unordered_map<int, int> m;",
            "using namespace": "using namespace std;",
            "printing": 'std::printf("x");',
            "files": "std::ofstream file(path);",
            "bare new": "int* x = new int;",
            "exceptions": "throw 1;",
            "assert": "assert(x);",
        }
        self.assertEqual({ban.name for ban in _BANS}, set(violations))
        for ban in _BANS:
            files = tree.Tree({"server/a.cc": "\n" + violations[ban.name] + "\n"})
            bare = Ban(ban.name, ban.pattern, ban.instead, where=ban.where)
            self.assert_found([f"server/a.cc:2: {ban.name} is banned"], banned_calls(files, [bare]))

    def test_comments_and_literals_are_not_code(self):
        files = tree.Tree(
            {"server/a.cc": '// never throw\nconst char* kText = "assert(x) \\" // throw";\n'}
        )
        self.assert_found([], banned_calls(files, [Ban("it", r"\bthrow\b|assert", "x")]))

    def test_new_into_an_owner_is_not_bare(self):
        files = tree.Tree(
            {"a.cc": "return std::unique_ptr<const A>(\n    new A(1));\nA* a = new A(2);\n"}
        )
        bare = next(ban for ban in _BANS if ban.name == "bare new")
        self.assert_found(["a.cc:3"], banned_calls(files, [Ban("it", bare.pattern, "x")]))

    def test_finds_an_exemption_that_nothing_needs(self):
        files = tree.Tree({"a.cc": "throw;\n", "b.cc": "\n"})
        ban = Ban("it", r"\bthrow\b", "x", allowed={"a.cc": "why", "b.cc": "why"})
        self.assert_found(["b.cc: needs no exemption"], banned_calls(files, [ban]))


if __name__ == "__main__":
    report.main()
