# SPDX-License-Identifier: Apache-2.0
"""Metrics, probes, alerts and the dashboard: what a live cluster shows, and whether the rest fits it."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

import yaml

from tests import report
from tests.process import cluster, program

_ROOT = pathlib.Path(__file__).parents[2]
_MONITORING = _ROOT / "deploy/monitoring"
_PROMTOOL = shutil.which("promtool")
_PROMETHEUS = shutil.which("prometheus")
_MISSING = None if _PROMTOOL and _PROMETHEUS else "needs prometheus: deploy/install-packages tests"
# Of sparse tables and certificates, of which the live cluster has none.
_OF_OTHER_JOBS = {"covey_rows", "covey_rows_pending", "covey_row_bytes",
                  "covey_certificate_expiry_timestamp_seconds"}
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
    "CoveyReplicationLags": ({"covey_replication_lag_records": "40x90"},
                             {"covey_replication_lag_records": " ".join(45 * ["64 20"])}),
    "CoveyReplicationSlow": (
        {"covey_replication_seconds_sum": "0+90x90", "covey_replication_seconds_count": "0+60x90"},
        {"covey_replication_seconds_sum": "0+30x90", "covey_replication_seconds_count": "0+60x90"}),
    "CoveyGradientsNotFinite": ({"covey_pushes_nonfinite_total": "0x58 1x30"},
                                {"covey_pushes_nonfinite_total": "1x90"}),
    "CoveyLossNotFinite": ({"covey_worker_loss": " ".join(90 * ["NaN"])}, {"covey_worker_loss": "2x90"}),
    "CoveyPushesLost": ({"covey_worker_pushes_lost_total": "0x58 1x30"},
                        {"covey_worker_pushes_lost_total": "1x90"}),
    "CoveyProducerQuarantined": ({"covey_quarantined_producers": "1x90"},
                                 {"covey_quarantined_producers": "0x90"}),
    "CoveyReplicaUnfit": ({'covey_events_total{event="replica_unfit"}': "0x58 1x30"},
                          {'covey_events_total{event="replica_unfit"}': "1x90"}),
    "CoveySnapshotFailed": ({'covey_events_total{event="snapshot_failed"}': "0x58 1x30"},
                            {'covey_events_total{event="snapshot_failed"}': "1x90"}),
    "CoveyFlushBehind": ({"covey_flush_is_behind": "1x90"}, {"covey_flush_is_behind": "0x90"}),
    "CoveyInputSlow": (
        {'covey_worker_step_seconds_total{part="input"}': "0+36x90",
         'covey_worker_step_seconds_total{part="computation"}': "0+24x90"},
        {'covey_worker_step_seconds_total{part="input"}': "0+24x90",
         'covey_worker_step_seconds_total{part="computation"}': "0+36x90"}),
    "CoveyCertificateExpires": ({"covey_certificate_expiry_timestamp_seconds": "100000x90"},
                                {"covey_certificate_expiry_timestamp_seconds": "200000x60 0x30"}),
    "CoveyStrangers": (
        {'covey_denied_total{reason="certificate"}': "0+4x90",
         'covey_denied_total{reason="right"}': "0+4x90"},
        {'covey_denied_total{reason="certificate"}': "0+4x90",
         'covey_denied_total{reason="right"}': "3x90"}),
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
    """The dashboard's, by title of the panel and name in it."""
    dashboard = json.loads((_MONITORING / "dashboard.json").read_text())
    return {f"{panel['title']} ({target['refId']})":
            target["expr"].replace("$__rate_interval", "1m")
            for panel in dashboard["panels"] for target in panel["targets"]}


def _documented():
    """{metric: (type, labels)} of docs/METRICS.md; `le` of histograms is not written there."""
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| ([\w, ]*)\|",
                      (_ROOT / "docs/METRICS.md").read_text(), re.MULTILINE)
    return {name: (kind, tuple(sorted(re.findall(r"\w+", labels)))) for name, kind, labels in rows}


def _exposed(page):
    """The same of a page of metrics."""
    found = {}
    for name, kind in re.findall(r"^# TYPE (\w+) (\w+)$", page, re.MULTILINE):
        of_series = f"{name}_count" if kind == "histogram" else name
        [labels, *_] = re.findall(rf"^{of_series}(?:{{(.*)}})? ", page, re.MULTILINE)
        found[name] = (kind, tuple(sorted(re.findall(r'(\w+)="', labels))))
    return found


def _names(expression):
    """The metrics that an expression reads; of a histogram's series, the histogram."""
    histograms = {name for name, (kind, _) in _documented().items() if kind == "histogram"}
    found = re.findall(r"\b(?:covey|process)_\w+\b|\bup\b", re.sub(r'"[^"]*"', "", expression))
    whole = (re.sub(r"_(?:bucket|sum|count)$", "", name) for name in found)
    return {base if base in histograms else name for base, name in zip(whole, found)}


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


def address_of(process):
    """Where it serves metrics, as its log says."""
    return process.await_line(r'serves_metrics.*?address"?[:=]"?([^" ]+:\d+)').group(1)


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
    """A scheduler, two servers and a group of two workers that trains."""

    def setUp(self):
        super().setUp()
        where = ["--metrics", "localhost:0"]
        self.job = cluster.Cluster(self, servers=2, workers=2, scheduler_options=where,
                                   server_options=where)
        self.workers = [
            self.start(f"worker-{rank}", [cluster.SYNTHETIC, "--steps", "1000000", *where,
                                          "--milliseconds-per-sample", "1"],
                       self.job.environment(rank))
            for rank in range(2)]
        self.addresses = {
            each.name: address_of(each)
            for each in (self.job.scheduler, *self.job.servers, *self.workers)}

    def pages(self):
        """Of all processes, by name, when each has seen a step."""
        def shown():
            found = {name: get(address, "/metrics")[1] for name, address in self.addresses.items()}
            signs = {"scheduler": "covey_group_loss{", "server": "covey_staleness_updates{",
                     "worker": "covey_worker_loss "}
            return found if all(signs[name.split("-")[0]] in page
                                for name, page in found.items()) else None

        return program.await_true(shown, "a step in the metrics of all processes")

    def value(self, name, metric):
        [found] = re.findall(rf"^{re.escape(metric)} ([\d.e+-]+)$",
                             get(self.addresses[name], "/metrics")[1], re.MULTILINE)
        return float(found)

    def test_metrics_and_probes(self):
        for address in self.addresses.values():
            program.await_true(lambda: get(address, "/readyz")[0] == 200, f"{address} is ready")
            for path in ("/healthz", "/livez"):
                self.assertEqual((200, "ok\n"), get(address, path))
            self.assertEqual(404, get(address, "/")[0])
        exposed = {}
        for name, page in self.pages().items():
            exposed.update(_exposed(page))
            self.assertIn(f'covey_build_info{{role="{name.split("-")[0]}",', page)
            self.assertLess(page.count("\n"), 2000)
            if _PROMTOOL:
                run = subprocess.run([_PROMTOOL, "check", "metrics"], input=page,
                                     capture_output=True, text=True)
                self.assertEqual((0, ""), (run.returncode, run.stdout + run.stderr))
        documented = _documented()
        self.assertEqual({name: labels for name, labels in documented.items()
                          if name not in _OF_OTHER_JOBS}, exposed)
        for title, query in _queries().items():
            with self.subTest(title):
                self.assertEqual(set(), _names(query) - set(exposed))
        program.await_true(lambda: any(self.value(f"server-{rank}", "covey_pushes_total") > 0
                                       for rank in range(2)), "a push in the metrics")

    def test_a_worker_says_what_it_does(self):
        steps = "covey_worker_steps_total"
        program.await_true(lambda: self.value("worker-0", steps) > 2, "steps")
        samples = self.value("worker-0", "covey_worker_samples_total")
        self.assertGreater(samples, self.value("worker-0", steps) - 1)
        self.assertEqual(2, self.value("worker-0", "covey_worker_group_members"))
        for part in ("computation", "servers"):
            self.assertGreater(
                self.value("worker-0", f'covey_worker_step_seconds_total{{part="{part}"}}'), 0)
        for direction in ("sent", "received"):
            self.assertGreater(
                self.value("worker-0", f'covey_worker_request_bytes_total{{direction="{direction}"}}'),
                0)
        # Its group takes the death of the other member for what it is, and goes on.
        self.workers[1].kill()
        program.await_true(lambda: self.value("worker-0", "covey_worker_group_members") == 1,
                           "a group of one")
        program.await_true(lambda: self.value("worker-0", "covey_worker_recoveries_total") > 0,
                           "a recovery")
        before = self.value("worker-0", steps)
        program.await_true(lambda: self.value("worker-0", steps) > before, "more steps")

    @unittest.skipIf(_MISSING, _MISSING)
    def test_prometheus_has_data_for_each_query_of_the_dashboard(self):
        address = self.start_prometheus()

        def ask(path, **parameters):
            status, text = get(address, f"/api/v1/{path}?{urllib.parse.urlencode(parameters)}")
            self.assertEqual(200, status, text)
            return json.loads(text)["data"]

        def result_of(query):
            return ask("query", query=query)["result"]

        for title, query in _queries().items():
            with self.subTest(title):
                # NaN is what a panel shows nothing of.
                program.await_true(
                    lambda: [each for each in result_of(query) if each["value"][1] != "NaN"],
                    f"data for {query}")
        program.await_true(
            lambda: len(result_of('up{job="covey"} == 1')) == len(self.addresses), "all scraped")
        for group in ask("rules")["groups"]:
            for rule in group["rules"]:
                self.assertEqual("ok", rule["health"], rule)
                self.assertNotEqual("firing", rule["state"], rule)
        # Figures for docs/METRICS.md.
        names = {address: name for name, address in self.addresses.items()}
        for metric in ("scrape_samples_scraped", "scrape_duration_seconds"):
            found = {names[each["metric"]["instance"]]: each["value"][1]
                     for each in result_of(f'avg_over_time({metric}{{job="covey"}}[1m])')}
            print(metric, json.dumps(found, sort_keys=True))

    def start_prometheus(self):
        """With the configuration for operators, but each second; returns its address."""
        folder = pathlib.Path(self.folder, "monitoring")
        folder.mkdir()
        (folder / "alerts.yaml").write_text((_MONITORING / "alerts.yaml").read_text())
        configuration = (_MONITORING / "prometheus.yml").read_text()
        (folder / "prometheus.yml").write_text(
            configuration.replace("15s", "1s").replace("5s", "1s"))
        (folder / "targets.json").write_text(
            json.dumps([{"targets": list(self.addresses.values())}]))
        prometheus = self.start("prometheus", [
            _PROMETHEUS, "--config.file", folder / "prometheus.yml", "--storage.tsdb.path",
            folder / "data", "--web.listen-address", "127.0.0.1:0"])
        address = prometheus.await_line(r'msg="Listening on" address=(\S+)').group(1)
        prometheus.await_line("Server is ready")
        return address


class CertificatesTest(cluster.ProcessTest):

    def test_each_process_says_when_its_certificate_expires(self):
        roles = cluster.certificates(self)
        where = ["--metrics", "localhost:0"]
        job = cluster.Cluster(self, servers=1, tls=roles, scheduler_options=where, server_options=where)
        worker = self.start("worker-0", [cluster.SYNTHETIC, "--steps", "1000000", *where],
                            job.environment(0))
        addresses = [address_of(each) for each in (job.scheduler, job.servers[0], worker)]

        def expiry(address):
            [found] = re.findall(r"^covey_certificate_expiry_timestamp_seconds (\S+)$",
                                 get(address, "/metrics")[1], re.MULTILINE)
            return float(found)

        for address in addresses:
            self.assertAlmostEqual(7 * 86400, expiry(address) - time.time(), delta=600)
        # A folder that is of no use any more alerts, too.
        os.unlink(os.path.join(roles, "server", "node.crt"))
        self.assertEqual(0, expiry(addresses[1]))
        self.assertGreater(expiry(addresses[0]), 0)


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
