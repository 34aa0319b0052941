# SPDX-License-Identifier: Apache-2.0
"""SIGHUP: schedulers and servers read their configuration files again while they run."""

import json
import os
import re
import signal
import urllib.request

from tests import report
from tests.process import cluster, ledger, outage, program

_MARK = "(SIGHUP reloads it)"
# A valid value for each setting that may change, which is not its default.
_SCHEDULER = {
    "stragglers": "observe", "straggler-ratio": "1.75", "straggler-probation": "2m",
    "partial-reduce-minimum": "2", "partial-reduce-grace": "20ms", "group-members-min": "3",
    "placement-wait": "3s", "regroup-after": "2s", "replacement-wait": "4s", "on-loss": "stop",
    "snapshot-every": "10m", "snapshots-kept": "5", "snapshot-deadline": "1m",
    "contract-fallback": "false", "drain-deadline": "7s", "log-level": "debug",
}
_SERVER = {
    "queued-bytes-max": "64MiB", "rate-max": "3MiB", "table-bytes-max": "1GiB",
    "drain-deadline": "7s", "log-level": "debug",
}
_SLOW, _FREE = "rate_max: 64KiB\n", "rate_max: 0\n"
_OVER = ("settings_reloaded", "settings_not_reloaded")


def _text(settings):
    return "".join(f"{name.replace('-', '_')}: {value}\n" for name, value in settings.items())


def _log(child):
    return [json.loads(line) for line in child.lines("stderr") if line.startswith("{")]


class ReloadTest(cluster.ProcessTest):
    def _path(self, role):
        return os.path.join(self.folder, f"{role}.yaml")

    def _write(self, role, text):
        # As an editor does: never half a file.
        with open(self._path(role) + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        os.rename(file.name, self._path(role))

    def _cluster(self, scheduler="", server="", server_options=(), **options):
        self._write("scheduler", scheduler)
        self._write("server", server)
        return cluster.Cluster(
            self, scheduler_options=["--config", self._path("scheduler")],
            server_options=["--config", self._path("server"), *server_options], **options)

    def _reload(self, child):
        """What the process logs of one reload."""
        before = len(_log(child))

        def whole():
            new = _log(child)[before:]
            return new if any(entry["event"] in _OVER for entry in new) else None

        child.signal(signal.SIGHUP)
        return program.await_true(whole, f"a reload by {child}")

    def _refusal(self, child):
        """The line that says why a reload has changed nothing; other events may come between."""
        entries = self._reload(child)
        self.assertEqual([], [entry for entry in entries if entry["event"] == "setting_changed"])
        return next(entry for entry in entries if entry["event"] in _OVER)

    def _changes(self, child):
        """{name: (before, after)} of one reload, which succeeds, and the names that need a restart."""
        entries = self._reload(child)
        over = next(entry for entry in entries if entry["event"] in _OVER)
        self.assertEqual(_OVER[0], over["event"], entries)
        changed = {entry["name"]: (entry["before"], entry["after"]) for entry in entries
                   if entry["event"] == "setting_changed"}
        restart = [entry["name"] for entry in entries if entry["event"] == "setting_not_changed"
                   and entry["reason"] == "needs a restart"]
        self.assertEqual((len(changed), len(restart)),
                         (over["changed"], over["need_restart"]))
        return changed, restart

    @staticmethod
    def _refused(running):
        loads = [entry.get("load") or {} for entry in running.status()["nodes"]]
        return sum(int(load.get("refused", 0)) for load in loads)

    def test_a_rate_holds_from_the_reload_on(self):
        running = self._cluster(server=_FREE, loops=2)
        [server] = running.servers
        producers = [ledger.Producer(self, running, "async", slot, replicas=1) for slot in range(2)]
        for producer in producers:
            producer.await_durable(5, "pushes without a limit")
        self.assertEqual(0, self._refused(running))
        self._write("server", _SLOW)
        self.assertEqual(({"rate-max": ("0", "64KiB")}, []), self._changes(server))
        program.await_true(lambda: self._refused(running) > 0, "pushes beyond the rate")
        self._write("server", _FREE)
        self.assertEqual(({"rate-max": ("64KiB", "0")}, []), self._changes(server))

        def unlimited():
            refused = self._refused(running)
            for producer in producers:
                producer.await_durable(50, "pushes without a limit again")
            return self._refused(running) == refused

        program.await_true(unlimited, "an end of refusals")
        ledger.stop(self, running, producers)
        account = ledger.audit(self, running, producers, replicas=1)
        self.assertEqual([], account.deviations)

    def test_limits_of_tables_and_queues_hold_from_the_reload_on(self):
        running = self._cluster(server_options=["--metrics", "localhost:0"])
        [server] = running.servers
        address = server.await_line(r'serves_metrics.*?"address":"([^"]+)"').group(1)
        self.assertEqual(1, running.count())
        self._write("server", "table_bytes_max: 16MiB\nqueued_bytes_max: 64MiB\n")
        changed, _ = self._changes(server)
        self.assertEqual({"table-bytes-max": ("0", "16MiB"), "queued-bytes-max": ("256MiB", "64MiB")},
                         changed)
        arguments = [outage.PROBE, "--scheduler", running.address, "--job", running.job,
                     "--tables", 1, "--elements", 8 << 20, "--replicas", 1, "--deadline", "3s"]
        large = self.run_to_end("large", arguments)
        self.assertNotEqual(0, large.code, large)
        self.assertIn("16777216", ledger.events(large, "failed")[0]["reason"])
        self.assertEqual(2, running.count())
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=60) as reply:
            limit = re.search(r"^covey_queued_max_bytes ([\d.e+]+)$", reply.read().decode(), re.M)
        self.assertEqual(64 << 20, float(limit.group(1)))
        # The shard is opened once there is room, for a client that asks again.
        self._write("server", "table_bytes_max: 1GiB\n")
        self._changes(server)
        self.start("large", arguments).await_line('"event":"rate"', count=2)

    def test_snapshots_are_made_from_the_reload_on(self):
        store = f"store: {self.folder}/store\n"
        running = self._cluster(scheduler=store, server=store)
        self.assertEqual(1, running.count())
        self.assertNotIn("newest", running.status().get("snapshots", {}))
        self._write("scheduler", store + "snapshot_every: 1s\nsnapshots_kept: 2\n")
        self._changes(running.scheduler)
        running.scheduler.await_line(r"snapshot \d+.*complete", count=3)
        # Without the setting, as it was at first.
        self._write("scheduler", store)
        changed, _ = self._changes(running.scheduler)
        self.assertEqual({"snapshot-every": ("1s", ""), "snapshots-kept": ("2", "3")}, changed)

    def test_each_setting_that_help_marks_can_change_and_no_other(self):
        for child, role, program_path, settings in self._roles():
            with self.subTest(role=role):
                shown = self.run_to_end("help", [program_path, "--help"]).lines("stdout")
                # A new option begins two columns from the left.
                options = re.split(r"\n  --", " " + "\n".join(shown))[1:]
                marked = {option.split()[0] for option in options
                          if _MARK in re.sub(r"\s+", " ", option)}
                self.assertEqual(set(settings), marked)
                self._write(role, self._files[role] + _text(settings))
                changed, restart = self._changes(child)
                self.assertEqual(set(settings), set(changed))
                self.assertEqual([], restart)
                # They are in use: nothing changes a second time.
                self.assertEqual(({}, []), self._changes(child))
                self._write(role, self._files[role] + "priority: low\n")
                self.assertIn("priority", self._changes(child)[0])
                self.assertEqual({10}, _nices(child.pid))
                self._write(role, self._files[role])
                self.assertEqual(({}, ["priority"]), self._changes(child))

    def _roles(self):
        store = f"store: {self.folder}/store\n"
        self._files = {"scheduler": store, "server": store}
        running = self._cluster(**self._files)
        return ((running.scheduler, "scheduler", cluster.SCHEDULER, _SCHEDULER),
                (running.servers[0], "server", cluster.SERVER, _SERVER))

    def test_what_needs_a_restart_is_named_and_stays(self):
        running = self._cluster(server="rate_max: 1MiB\n")
        [server] = running.servers
        self._write("server", "rate_max: 2MiB\nspin: 100us\njob: another\nloops: 7\n")
        # The flags --job and --loops come first.
        self.assertEqual(({"rate-max": ("1MiB", "2MiB")}, ["spin"]), self._changes(server))
        self._write("scheduler", "lease: 40s\nservers: 9\n")
        self.assertEqual(({}, ["lease"]), self._changes(running.scheduler))
        self.assertEqual(1, running.count())
        # A setting that could change needs one that cannot.
        self._write("scheduler", f"store: {self.folder}/store\nsnapshot_every: 10m\n")
        entry = self._refusal(running.scheduler)
        self.assertIn("restart the process to change all of them: snapshot-every, resume and "
                      "initial-values need a store", entry["reason"])

    def test_a_wrong_file_changes_nothing(self):
        running = self._cluster(scheduler="straggler_ratio: 2\n", server="rate_max: 1MiB\n")
        for child, role, program_path, texts in (
                (running.scheduler, "scheduler", cluster.SCHEDULER, (
                    "straggler_ratio: 3\nheartbeat: fast\n", "straggler_ratio: 3\nheartbeats: 1s\n",
                    "straggler_ratio: 0\n", "straggler_ratio: [\n", "- a\n", "host: 0.0.0.0\n")),
                (running.servers[0], "server", cluster.SERVER, (
                    "rate_max: 2MiB\nspin: long\n", "rate_max: 1KiB\n", "rate_max: 2MiB\ntls: /nowhere\n",
                    "log_level: loud\n", "data_host: 0.0.0.0\n", "rate_max: 1\nrate_max: 2\n"))):
            for text in texts:
                with self.subTest(text=text):
                    self._write(role, text)
                    entry = self._refusal(child)
                    self.assertEqual((_OVER[1], "error"), (entry["event"], entry["level"]))
                    self.assertEqual(self._at_start(program_path, role), entry["reason"])
        os.unlink(self._path("server"))
        entry = self._refusal(running.servers[0])
        self.assertIn("cannot read the configuration file", entry["reason"])
        # What was in use still is.
        self._write("scheduler", "straggler_ratio: 4\n")
        self._write("server", "rate_max: 4MiB\n")
        self.assertEqual(({"straggler-ratio": ("2", "4")}, []), self._changes(running.scheduler))
        self.assertEqual(({"rate-max": ("1MiB", "4MiB")}, []), self._changes(running.servers[0]))
        self.assertEqual(1, running.count())

    def _at_start(self, program_path, role):
        """What a process says that is started with the file."""
        ended = self.run_to_end("refused", [
            program_path, "--config", self._path(role), "--validate-only",
            *(["--scheduler", "127.0.0.1:1"] if role == "server" else [])])
        self.assertEqual(2, ended.code, ended)
        last = ended.lines()[-1]
        if not last.startswith("{"):
            return last.partition(": ")[2]
        entry = json.loads(last)
        return entry.get("error") or entry["reason"]

    def test_without_a_file_nothing_happens(self):
        running = cluster.Cluster(self)
        for child in (running.scheduler, *running.servers):
            entry = self._refusal(child)
            self.assertEqual((_OVER[1], "warning"), (entry["event"], entry["level"]))
            self.assertIn("there is no configuration file", entry["reason"])
        self.assertEqual(1, running.count())
        # Nor does SIGTERM mean something else after it.
        running.stop()

    def test_a_hundred_signals_lose_no_push(self):
        running = self._cluster(server=_FREE, servers=2, loops=2)
        producers = [ledger.Producer(self, running, contract, slot)
                     for contract in ("async", "buffered:2") for slot in range(2)]
        for producer in producers:
            producer.await_durable(1, "a first push")
        for number in range(100):
            self._write("server", f"rate_max: {1 + number % 3}MiB\n"
                                  f"queued_bytes_max: {64 + number % 2}MiB\n")
            self._write("scheduler", f"straggler_ratio: {2 + number % 2}\n")
            for child in (running.scheduler, *running.servers):
                child.signal(signal.SIGHUP)
            if number % 10 == 0:
                producers[number // 10 % 4].await_durable(1, "a push")
        for child in running.servers:
            # Lines of earlier signals may still come.
            program.await_true(lambda child=child: self._reload(child)[-1].get("changed") == 0,
                               "the last reload")
            self.assertGreater(child.count("setting_changed"), 10)
        ledger.stop(self, running, producers)
        account = ledger.audit(self, running, producers)
        print(account, flush=True)
        self.assertEqual([], account.deviations)
        self.assertEqual((0, 0), (account.lost, account.doubled))


def _nices(pid):
    """The nice values of a process's threads."""
    nices = set()
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/stat", encoding="ascii") as file:
            nices.add(int(file.read().rpartition(")")[2].split()[16]))
    return nices


if __name__ == "__main__":
    report.main()
