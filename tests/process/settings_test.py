# SPDX-License-Identifier: Apache-2.0
"""Wrong settings of schedulers and servers: each is refused with exit code 2, by these words."""

import json
import os
import subprocess

from tests import report
from tests.process import cluster, program

_WHOLE = 'is not a whole number from 0 to 4294967295; see --help'
_DURATION = 'is not a duration; write it like 500ms, 2s or 1h30m; see --help'
_SIZE = 'is not a size; write it like 4096, 64KiB or 256MiB; see --help'
_PLACE = "choose HOST:PORT, several with commas between, or set COVEY_SCHEDULER"
_STORE = "snapshot-every, resume and initial-values need a store: name its folder with --store DIR"
_OPEN = (", which other hosts reach, and this process has no credentials: everybody there could take part in the job. "
         "Give --tls DIR ('covey certificates issue' makes DIR), or --insecure where everybody on the network is trusted")
_NO_FOLDER = "there is no folder /nowhere; copy it to this host, or make it with covey certificates issue"
_BOTH = "--insecure and --tls contradict each other; leave one of them out"

# Flags, and the whole message.
_SCHEDULER_FLAGS = (
    ("--jobb x", "unknown flag --jobb; did you mean --job?"),
    ("extra", 'unexpected argument "extra"; see --help'),
    ("--port x", f'flag --port: "x" {_WHOLE}'),
    ("--port 70000", "port = 70000: 0 (any) to 65535 are allowed"),
    ("--servers -1", f'flag --servers: "-1" {_WHOLE}'),
    ("--servers 0", "servers = 0: 1 to 32768 are allowed"),
    ("--workers 0", "workers = 0: a group has 1 to 4096 workers"),
    ("--groups 20000 --workers 2",
     "groups = 20000: at most 16384 groups of 2 workers are allowed"),
    ("--groups many", 'flag --groups: "many" is no number of groups; write one, or auto to let the '
                      'scheduler choose; see --help'),
    ("--groups auto --workers 40000",
     "workers = 40000: 1 to 32768 are allowed with automatic groups"),
    ("--job=", "job = '': a name of 1 to 256 bytes is needed"),
    ("--heartbeat 5", f'flag --heartbeat: "5" {_DURATION}'),
    ("--heartbeat 0s", "heartbeat = 0: 10ms to 1m are allowed"),
    ("--silence-min 10ms", "silence-min = 10ms: at least two heartbeats and at most 1h are allowed"),
    ("--placement-wait 2h", "placement-wait = 2h: 0 to 1h are allowed"),
    ("--regroup-after 2h", "regroup-after = 2h: 0 to 1h are allowed"),
    ("--replacement-wait 2d", f'flag --replacement-wait: "2d" {_DURATION}'),
    ("--restart-grace -1s", f'flag --restart-grace: "-1s" {_DURATION}'),
    ("--lease 1ms", "lease = 1ms: 0 (none), or two heartbeats to 1h are allowed"),
    ("--lease 100h", "lease = 100h: 0 (none), or two heartbeats to 1h are allowed"),
    ("--drain-deadline 2h", "drain-deadline = 2h: 0 to 1h are allowed"),
    ("--straggler-ratio 1.1", "straggler-ratio = 1.1: more than 1.2 (recovered) and at most 1000 is needed"),
    ("--durability forever", 'flag --durability: "forever" is no durability; choose memory, replicated, or flushed with '
                             'an interval, as in flushed:2s; see --help'),
    ("--durability flushed:2s", "durability flushed:2s needs a store to flush to: name its folder with --store DIR"),
    ("--durability replicated", "durability replicated needs at least two servers: start more with --servers 2, or "
                                "choose memory"),
    ("--on-loss weep", 'flag --on-loss: "weep" is no measure; choose restore, begin-anew or stop; see --help'),
    ("--resume latest", _STORE),
    ("--initial-values x", _STORE),
    ("--snapshot-every 1m", _STORE),
    ("--snapshot-every often", 'flag --snapshot-every: "often" is no interval; write a duration like 10min, or '
                               '1e6samples; see --help'),
    ("--snapshot-every 0samples", 'flag --snapshot-every: "0samples" is no interval; write a number of examples like '
                                  '1e6samples; see --help'),
    ("--snapshots-kept 0", "snapshots-kept = 0: 1 to 1000 are allowed"),
    ("--feedback-flush-steps 1000001", "feedback-flush-steps = 1000001: 0 (never) to 1000000 are allowed"),
    ("--snapshot-deadline 1ms", "snapshot-deadline = 1ms: 1s to 24h are allowed"),
    ("--host 0.0.0.0", f"--host is 0.0.0.0{_OPEN}"),
    ("--tls /nowhere", _NO_FOLDER),
    ("--priority high", 'flag --priority: "high" is neither normal nor low; see --help'),
    ("--etcd nonsense", "etcd = 'nonsense': HOST:PORT[,HOST:PORT] is wanted"),
    ("--etcd h:1 --log-file /l", "log-file and etcd are both set: decisions are kept in one place; unset one"),
    ("--etcd h:1 --etcd-lease 1ms", "etcd-lease = 1ms: 1s to 10m are allowed"),
    ("--config /nowhere", "cannot read the configuration file /nowhere; check its name"),
)
_SERVER_FLAGS = (
    ("--data-hostt x", "unknown flag --data-hostt; did you mean --data-host?"),
    ("--scheduler h", f"--scheduler is 'h'; {_PLACE}"),
    ("--scheduler h:99999", f"--scheduler is 'h:99999'; {_PLACE}"),
    ("--scheduler h:1,:2", f"--scheduler is 'h:1,:2'; {_PLACE}"),
    ("--rank x", 'flag --rank: "x" is not a whole number from -2147483648 to 2147483647; see --help'),
    ("--rank -2", "--rank is '-2'; choose -1 (any) to 65535"),
    ("--labels a/b/c/d/e", "--labels is 'a/b/c/d/e', which has 5 parts; give at most four: zone/rack/host/device"),
    ("--transport pigeon", "--transport is 'pigeon'; choose auto, tcp or ipc"),
    ("--table-memory gpu", "--table-memory is 'gpu'; choose host or cuda"),
    ("--data-host=", "--data-host is ''; choose an address of this machine"),
    ("--data-host 0.0.0.0", f"--data-host is 0.0.0.0{_OPEN}"),
    ("--data-port 65536", "--data-port is '65536'; choose 0 (any), or so that the ports of all loops are below 65536"),
    ("--loops 256", "--loops is '256'; choose 0 (one per core) to 255"),
    ("--loops 2 --advertise-data h:1", "--advertise-data is 'h:1'; choose one HOST:PORT for each of --loops"),
    ("--loops 1 --advertise-data h:0", "--advertise-data is 'h:0'; choose HOST:PORT[,HOST:PORT], with ports 1 to 65535"),
    ("--spin 1s", "--spin is '1s'; choose 0 to 1ms"),
    ("--spare-bytes-max 1", "--spare-bytes-max is '1'; choose 1MiB to 1GiB"),
    ("--queued-bytes-max lots", f'flag --queued-bytes-max: "lots" {_SIZE}'),
    ("--queued-bytes-max 1MiB", "--queued-bytes-max is '1048576'; choose 32MiB to 64GiB"),
    ("--rate-max 1KiB", "--rate-max is '1024'; choose 0 (no limit), or 64KiB to 1TiB, in a second"),
    ("--table-bytes-max 1", "--table-bytes-max is '1'; choose 0 (by the memory of the process), or 1MiB to 64TiB"),
    ("--drain-deadline 2h", "--drain-deadline is '2h'; choose 0 to 1h"),
    ("--join-deadline 0s", "--join-deadline is '0'; choose 100ms to 1h"),
    ("--tls /nowhere", _NO_FOLDER),
    ("--tls /nowhere --insecure", _BOTH),
)
# The file of a scheduler; {file} is its name.
_FILES = (
    ("job: a\njob: b\n", '{file}:2: "job" is given twice; first at {file}:1'),
    ("jbo: x\n", '{file}:1: unknown key "jbo"; did you mean "job"?'),
    ("log-file: x\n", '{file}:1: unknown key "log-file"; did you mean "log_file"?'),
    ("- a\n", "{file}: not a list of `name: value`; see what --print-config prints"),
    ("job: {a: b}\n", "{file}:1: expected `name: value`"),
    ("port: 1e3\n", '{file}:1: "1e3" ' + _WHOLE),
    ("heartbeat: 500\n", '{file}:1: "500" ' + _DURATION),
    ("elastic: yes please\n", '{file}:1: "yes please" is neither true nor false; see --help'),
)
_ENVIRONMENTS = (
    (cluster.SCHEDULER, "COVEY_PORT", "x", f'environment COVEY_PORT: "x" {_WHOLE}'),
    (cluster.SCHEDULER, "COVEY_CONFIG", "/nowhere", "cannot read the configuration file /nowhere; check its name"),
    (cluster.SERVER, "COVEY_TABLE_BYTES_MAX", "much", f'environment COVEY_TABLE_BYTES_MAX: "much" {_SIZE}'),
    (cluster.SERVER, "COVEY_LOG_LEVEL", "loud",
     'environment COVEY_LOG_LEVEL: "loud" is neither debug, info, warning nor error; see --help'),
    (cluster.SERVER, "COVEY_SCHEDULER", "h", f"--scheduler is 'h'; {_PLACE}"),
)
# What a server needs.
_SOMEWHERE = ["--scheduler", "127.0.0.1:1"]


class SettingsTest(cluster.ProcessTest):
    def _check(self, binary, arguments, environment=None):
        """Exit code and what the process says last."""
        ended = self.run_to_end(os.path.basename(binary), [binary, *arguments, "--validate-only"],
                                {"COVEY_LOG_FORMAT": "json", **(environment or {})})
        last = ended.lines()[-1]
        if last.startswith("{"):
            entry = json.loads(last)
            return ended.code, entry.get("error") or entry.get("reason") or entry["event"]
        return ended.code, last.partition(": ")[2]

    def _refused(self, message, binary, arguments, environment=None):
        with self.subTest(arguments=arguments, environment=environment):
            self.assertEqual((2, message), self._check(binary, arguments, environment))

    def test_wrong_settings_are_refused(self):
        wrong = len(_SCHEDULER_FLAGS) + len(_SERVER_FLAGS) + len(_FILES) + len(_ENVIRONMENTS)
        self.assertGreaterEqual(wrong, 60)
        for flags, message in _SCHEDULER_FLAGS:
            self._refused(message, cluster.SCHEDULER, flags.split())
        for flags, message in _SERVER_FLAGS:
            scheduler = [] if "--scheduler" in flags else _SOMEWHERE
            self._refused(message, cluster.SERVER, [*scheduler, *flags.split()])
        for number, (text, message) in enumerate(_FILES):
            path = os.path.join(self.folder, f"{number}.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            self._refused(message.format(file=path), cluster.SCHEDULER, ["--config", path])
        for binary, name, value, message in _ENVIRONMENTS:
            self._refused(message, binary, [], {name: value})

    def test_a_refusal_is_json_whatever_bytes_it_is_about(self):
        for odd in (b"\xff\xfe", b'"\\', b"\n\r\x1b[2J\x7f", "\u2028\u2029\x85".encode(), b"\xed\xa0\x80",
                    "\U0001f600".encode(), b"\xc3" * 50_000):
            ended = subprocess.run(
                [cluster.SERVER, *_SOMEWHERE, "--validate-only", b"--transport=" + odd],
                env={"COVEY_LOG_FORMAT": "json"}, capture_output=True, timeout=program.PATIENCE_SECONDS)
            self.assertEqual(2, ended.returncode, odd)
            [line] = ended.stderr.decode("utf-8", "strict").splitlines()
            said = "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c
                           for c in odd.decode("utf-8", "surrogateescape"))
            self.assertEqual(f"--transport is '{said}'; choose auto, tcp or ipc",
                             json.loads(line)["reason"])

    def test_valid_settings_start_nothing(self):
        port_file = os.path.join(self.folder, "port")
        self.assertEqual((0, "settings_valid"),
                         self._check(cluster.SCHEDULER, ["--port-file", port_file]))
        self.assertFalse(os.path.exists(port_file))
        # No scheduler listens at that address; a server that starts would wait for one.
        self.assertEqual((0, "settings_valid"), self._check(cluster.SERVER, _SOMEWHERE))


if __name__ == "__main__":
    report.main()
