# SPDX-License-Identifier: Apache-2.0
"""Metrics, probes, alerts and the dashboard: what a live cluster shows, and whether the rest fits it."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest
import urllib.error
import urllib.request

import yaml

from tests import report
from tests.process import cluster, program

_ROOT = pathlib.Path(__file__).parents[2]
_MONITORING = _ROOT / "deploy/monitoring"
_PROMTOOL = shutil.which("promtool")
_MISSING = None if _PROMTOOL else "needs promtool: deploy/install-packages tests"
# Shown for sparse tables only, of which the live cluster has none.
_OF_SPARSE_TABLES = {"covey_rows", "covey_rows_pending", "covey_row_bytes"}
# Of Prometheus itself.
_OF_PROMETHEUS = {"up"}

# Alert -> series that fire it after an hour, and series that do not; "1x60" is one for an hour.
_SERIES = {
    "CoveyNoLeader": ({"covey_scheduler_leads": "0x90"}, {"covey_scheduler_leads": "1x90"}),
    "CoveyProcessDown": ({"up": "0x90"}, {"up": "1x90"}),
    "CoveyContentLost": ({'covey_events_total{event="shard_lost"}': "0x58 1x30"},
                         {'covey_events_total{event="shard_lost"}': "1x90"}),
    "CoveyShardsWithoutServer": ({'covey_shards_without_server{table="t"}': "2x90"},
                                 {'covey_shards_without_server{table="t"}': "0x90"}),
    "CoveyStalled": (
        {'covey_group_step{group="1"}': "7x90", 'covey_group_members{group="1"}': "2x90",
         "covey_workers_away": "0x90"},
        {'covey_group_step{group="1"}': "7x90", 'covey_group_members{group="1"}': "2x90",
         "covey_workers_away": "1x90"}),
    "CoveyShardsShort": ({'covey_shards_short{table="t"}': "1x90"},
                         {'covey_shards_short{table="t"}': "0x90"}),
    "CoveyNodesMissing": (
        {'covey_nodes{role="server",state="alive"}': "1x90",
         'covey_nodes_expected{role="server"}': "2x90"},
        {'covey_nodes{role="server",state="alive"}': "2x90",
         'covey_nodes_expected{role="server"}': "2x90"}),
    "CoveyGroupSlow": (
        {f'covey_group_samples_per_second{{group="{group}"}}': f"{rate}x90"
         for group, rate in enumerate([100, 100, 40])},
        {f'covey_group_samples_per_second{{group="{group}"}}': f"{rate}x90"
         for group, rate in enumerate([100, 100, 60])}),
    "CoveyOverload": ({"covey_requests_refused_total": "0+120x90"},
                      {"covey_requests_refused_total": "0+30x90"}),
    "CoveyQueueFull": ({"covey_queued_bytes": "90x90", "covey_queued_max_bytes": "100x90"},
                       {"covey_queued_bytes": "70x90", "covey_queued_max_bytes": "100x90"}),
    "CoveyGradientsNotFinite": ({"covey_pushes_nonfinite_total": "0x58 1x30"},
                                {"covey_pushes_nonfinite_total": "1x90"}),
    "CoveyProducerQuarantined": ({"covey_quarantined_producers": "1x90"},
                                 {"covey_quarantined_producers": "0x90"}),
    "CoveyReplicaUnfit": ({'covey_events_total{event="replica_unfit"}': "0x58 1x30"},
                          {'covey_events_total{event="replica_unfit"}': "1x90"}),
    "CoveySnapshotFailed": ({'covey_events_total{event="snapshot_failed"}': "0x58 1x30"},
                            {'covey_events_total{event="snapshot_failed"}': "1x90"}),
    "CoveyFlushBehind": ({"covey_flush_is_behind": "1x90"}, {"covey_flush_is_behind": "0x90"}),
    "CoveyInsecure": ({"covey_insecure": "1x90"}, {"covey_insecure": "0x90"}),
    "CoveyFailover": ({'covey_events_total{event="head_replaced"}': "0x58 1x30"},
                      {'covey_events_total{event="node_left"}': "0x58 1x30"}),
    "CoveyWorkerEvicted": ({'covey_events_total{event="worker_evicted"}': "0x58 1x30"},
                           {'covey_events_total{event="worker_moved"}': "0x58 1x30"}),
}


def _rules():
    [group] = yaml.safe_load((_MONITORING / "alerts.yaml").read_text())["groups"]
    return group["rules"]


def _queries():
    """The dashboard's, by title of the panel."""
    dashboard = json.loads((_MONITORING / "dashboard.json").read_text())
    return {panel["title"]: target["expr"].replace("$__rate_interval", "1m")
            for panel in dashboard["panels"] for target in panel["targets"]}


def _documented():
    """{metric: (type, labels)} of docs/METRICS.md."""
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| ([\w, ]*)\|",
                      (_ROOT / "docs/METRICS.md").read_text(), re.MULTILINE)
    return {name: (kind, tuple(sorted(re.findall(r"\w+", labels)))) for name, kind, labels in rows}


def _exposed(page):
    """The same of a page of metrics."""
    found = {}
    for name, kind in re.findall(r"^# TYPE (\w+) (\w+)$", page, re.MULTILINE):
        [labels, *_] = re.findall(rf"^{name}(?:{{(.*)}})? ", page, re.MULTILINE)
        found[name] = (kind, tuple(sorted(re.findall(r'(\w+)="', labels))))
    return found


def _names(expression):
    """The metrics that an expression reads."""
    return set(re.findall(r"\b(?:covey|process)_\w+\b|\bup\b", re.sub(r'"[^"]*"', "", expression)))


def _series(name):
    """With the labels that a scrape adds."""
    own = 'job="covey",instance="i"'
    return name[:-1] + "," + own + "}" if name.endswith("}") else f"{name}{{{own}}}"


def get(address, path):
    """(status, text) of an answer."""
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=program.PATIENCE_SECONDS) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


class RulesTest(unittest.TestCase):

    def test_each_alert_has_a_runbook(self):
        rows = re.findall(r"^\| `(Covey\w+)` \| (\w+) \|", (_ROOT / "docs/OPERATIONS.md").read_text(),
                          re.MULTILINE)
        self.assertEqual([(rule["alert"], rule["labels"]["severity"]) for rule in _rules()], rows)
        self.assertEqual([rule["alert"] for rule in _rules()], list(_SERIES))

    def test_alerts_and_dashboard_read_documented_metrics(self):
        documented = set(_documented()) | _OF_PROMETHEUS
        for name, expression in [*((rule["alert"], rule["expr"]) for rule in _rules()),
                                 *_queries().items()]:
            with self.subTest(name):
                self.assertTrue(_names(expression))
                self.assertEqual(set(), _names(expression) - documented)

    @unittest.skipIf(_MISSING, _MISSING)
    def test_each_alert_fires_and_is_silent(self):
        tests = []
        for alert, both in _SERIES.items():
            for fires, series in zip((True, False), both):
                tests.append({
                    "interval": "1m",
                    "input_series": [{"series": _series(name), "values": values}
                                     for name, values in series.items()],
                    # Any alert of this name: the labels are not compared.
                    "promql_expr_test": [{
                        "expr": f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) > bool 0',
                        "eval_time": "65m" if alert == "CoveyInsecure" else "62m",
                        "exp_samples": [{"labels": "{}", "value": 1}] if fires else [],
                    }],
                })
        folder = os.environ.get("TEST_TMPDIR", "/tmp")
        path = os.path.join(folder, "alerts_test.yaml")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"rule_files": [str(_MONITORING / "alerts.yaml")], "tests": tests,
                       "evaluation_interval": "1m"}, file)
        for arguments in (["check", "rules", str(_MONITORING / "alerts.yaml")],
                          ["test", "rules", path]):
            run = subprocess.run([_PROMTOOL, *arguments], capture_output=True, text=True)
            self.assertEqual(0, run.returncode, run.stdout + run.stderr)


class LiveTest(cluster.ProcessTest):

    def setUp(self):
        super().setUp()
        where = ["--metrics", "localhost:0"]
        self.job = cluster.Cluster(self, servers=2, scheduler_options=where, server_options=where)
        self.addresses = [
            each.await_line(r'serves_metrics.*?address"?[:=]"?([^" ]+:\d+)').group(1)
            for each in (self.job.scheduler, *self.job.servers)]

    def train(self):
        return self.start("worker", [cluster.SYNTHETIC, "--steps", "1000000",
                                     "--milliseconds-per-sample", "1"],
                          self.job.environment(0))

    def test_metrics_and_probes(self):
        for address in self.addresses:
            self.assertEqual((200, "ok\n"), get(address, "/healthz"))
            program.await_true(lambda: get(address, "/readyz")[0] == 200, f"{address} is ready")
            self.assertEqual(404, get(address, "/")[0])
        self.train()

        def pages():
            found = [get(address, "/metrics")[1] for address in self.addresses]
            whole = "".join(found)
            return found if ("covey_staleness_updates{" in whole
                             and "covey_group_loss{" in whole) else None

        pages = program.await_true(pages, "a step")
        exposed = {}
        for page in pages:
            exposed.update(_exposed(page))
            self.assertLess(page.count("\n"), 2000)
            if _PROMTOOL:
                run = subprocess.run([_PROMTOOL, "check", "metrics"], input=page,
                                     capture_output=True, text=True)
                self.assertEqual((0, ""), (run.returncode, run.stdout + run.stderr))
        documented = _documented()
        self.assertEqual({name: labels for name, labels in documented.items()
                          if name not in _OF_SPARSE_TABLES}, exposed)
        for title, query in _queries().items():
            with self.subTest(title):
                self.assertEqual(set(), _names(query) - set(exposed))
        pushes = re.compile(r"^covey_pushes_total ([\d.e+]+)$", re.MULTILINE)
        program.await_true(
            lambda: any(float(pushes.search(get(address, "/metrics")[1]).group(1)) > 0
                        for address in self.addresses[1:]), "a push in the metrics")


class ExposureTest(cluster.ProcessTest):

    def test_other_hosts_are_let_in_on_purpose_only(self):
        for binary, more in ((cluster.SCHEDULER, []),
                             (cluster.SERVER, ["--scheduler", "127.0.0.1:1"])):
            for address, text in (("0.0.0.0:0", "--insecure"), ("9464", "HOST:PORT")):
                run = self.run_to_end("refused", [binary, *more, "--metrics", address])
                self.assertEqual(2, run.code, run)
                run.await_line(text)


if __name__ == "__main__":
    report.main()
