# SPDX-License-Identifier: Apache-2.0
"""`covey dashboard`: what it refuses, and its page in a browser.

With COVEY_SCREENSHOTS=FOLDER it writes the pictures of docs/OPERATIONS.md there.
"""

import http.client
import http.server
import json
import os
import pathlib
import re
import signal
import threading
import unittest

from tests import report
from tests.process import browser, cluster, program

_FILES = pathlib.Path(program.built("client/cli/dashboard"))
_HOSTILE = "<img/src=x/onerror=alert(1)>"
_VIEWS = ["progress", "groups", "racks", "stragglers", "tables", "replicas", "nodes", "snapshots", "events"]


class DashboardTest(cluster.ProcessTest):

    def start_dashboard(self, address, *options):
        """Returns the program, its port and its token."""
        dashboard = self.start("dashboard", [cluster.COVEY, "dashboard", "--scheduler", address,
                                             *options])
        found = dashboard.await_line(r"^http://127.0.0.1:(\d+)/#([0-9a-f]{32})$")
        return dashboard, int(found.group(1)), found.group(2)

    def ask(self, port, path="/", method="GET", host=None, **headers):
        """Returns the response of one request, and its body."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.putrequest(method, path, skip_host=True)
        connection.putheader("Host", host or f"127.0.0.1:{port}")
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        response = connection.getresponse()
        body = response.read()
        connection.close()
        return response, body

    def assert_clean(self, window, port):
        """No complaint in the console, and no request to another host."""
        self.assertEqual([], window.complaints())
        own = f"http://127.0.0.1:{port}/"
        self.assertTrue(window.requested())
        self.assertEqual([], [url for url in window.requested()
                              if not url.startswith((own, "data:", "chrome://"))])

    def picture(self, window, name):
        if folder := os.environ.get("COVEY_SCREENSHOTS"):
            window.driver.save_screenshot(f"{folder}/{name}.png")


class RefusalTest(DashboardTest):

    def test_refuses_what_is_not_its_page(self):
        # Port 1 is reserved; nothing listens there. The page is served all the same.
        dashboard, port, token = self.start_dashboard("127.0.0.1:1")
        state = "/api/v1/state?since=0"
        for status, arguments in [
                (200, {"path": "/"}),
                (200, {"path": "/", "host": f"localhost:{port}"}),
                (200, {"path": "/page.js", "method": "HEAD"}),
                (404, {"path": "/etc/passwd"}),
                (403, {"path": "/", "host": "example.com"}),
                (403, {"path": "/", "host": f"example.com:{port}"}),
                (403, {"path": state}),
                (403, {"path": state, "Covey_Token": "0" * 32}),
                (200, {"path": state, "Covey_Token": token}),
                (403, {"path": state, "Covey_Token": token, "host": "example.com"}),
                (403, {"path": state, "Covey_Token": token, "Origin": "http://example.com"}),
                (403, {"path": state, "Covey_Token": token, "Origin": "null"}),
                (200, {"path": state, "Covey_Token": token, "Origin": f"http://localhost:{port}"}),
                (403, {"path": state, "Covey_Token": token, "Sec_Fetch_Site": "cross-site"}),
        ]:
            response, body = self.ask(port, **arguments)
            self.assertEqual(status, response.status, (arguments, body))
            self.assertIn("default-src 'none'", response.getheader("Content-Security-Policy"))
            self.assertIn("frame-ancestors 'none'", response.getheader("Content-Security-Policy"))
            self.assertEqual("nosniff", response.getheader("X-Content-Type-Options"))
            self.assertEqual("no-store", response.getheader("Cache-Control"))
        for method in ("POST", "PUT", "DELETE", "OPTIONS"):
            response, _ = self.ask(port, state, method, Covey_Token=token, Content_Length="0")
            self.assertGreaterEqual(response.status, 400, method)
        told = json.loads(self.ask(port, state, Covey_Token=token)[1])
        self.assertFalse(told["contact"]["connected"])
        self.assertIsNone(told["state"])
        # Other hosts cannot reach the page.
        listening = pathlib.Path("/proc/net/tcp").read_text() + pathlib.Path(
            "/proc/net/tcp6").read_text()
        self.assertEqual(["0100007F"], re.findall(rf": (\w+):{port:04X} 0+:0000 0A", listening))
        dashboard.signal(signal.SIGTERM)
        self.assertEqual(0, dashboard.exit_code(), dashboard)

    def test_the_page_is_small_and_needs_nobody(self):
        files = [_FILES / name for name in ("page.html", "page.css", "page.js", "icon.svg")]
        self.assertLessEqual(sum(file.stat().st_size for file in files), 100 * 1024)
        code = (_FILES / "page.js").read_text()
        for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            self.assertNotIn(way, code)

    def test_a_taken_port(self):
        _, port, _ = self.start_dashboard("127.0.0.1:1")
        second = self.run_to_end("dashboard", [cluster.COVEY, "dashboard", "--scheduler",
                                               "127.0.0.1:1", "--port", port])
        self.assertEqual(1, second.code, second)
        self.assertIn(str(port), second.lines("stderr")[0])


class SecuredTest(DashboardTest):

    def state(self, address, *options):
        """What a dashboard that asks the scheduler there tells its page, once it has asked."""
        _, port, token = self.start_dashboard(address, *options)

        def asked():
            told = json.loads(self.ask(port, "/api/v1/state?since=0", Covey_Token=token)[1])
            return None if told["contact"]["error"] == "no scheduler has answered yet" else told

        return program.await_true(asked, "an answer of the scheduler, or its refusal")

    def test_it_shows_what_its_certificate_may_see(self):
        roles = cluster.certificates(self)
        running = cluster.Cluster(self, servers=1, tls=roles)
        shown = self.state(running.address, "--tls", os.path.join(roles, "viewer"))
        self.assertTrue(shown["contact"]["connected"], shown)
        self.assertEqual(["server-0"], [node["name"] for node in shown["state"]["nodes"]])
        of_others = cluster.certificates(self, folder=os.path.join(self.folder, "others"))
        for options in ([], ["--tls", os.path.join(of_others, "viewer")]):
            refused = self.state(running.address, *options)
            self.assertRegex(refused["contact"]["error"], "--tls|certificate|handshake")
            self.assertIsNone(refused["state"])


@unittest.skipIf(browser.MISSING, browser.MISSING)
class BrowserTest(DashboardTest):

    def test_a_live_cluster(self):
        running = cluster.Cluster(self, servers=3, groups=2, workers=2, server_options=[
            "--labels", "zone-a/rack-1"])
        self.start("hostile", [*running.server_arguments(3), "--labels", _HOSTILE])
        for rank in range(4):
            self.start(f"worker-{rank}", [
                cluster.SYNTHETIC, "--tensors", 2, "--tensor-kib", 64, "--steps", 100000,
                "--group-batch", 8, "--milliseconds-per-sample", 10, "--slow", "0:4",
            ], {**running.environment(rank), "COVEY_LABELS": f"zone-a/rack-{rank % 2}"})
        dashboard, port, token = self.start_dashboard(running.address)
        window = browser.Browser(self, height=1300)
        window.open(f"http://127.0.0.1:{port}/#{token}")
        program.await_true(lambda: window.text("health") == "healthy", "a healthy cluster")
        program.await_true(
            lambda: window.run("return document.querySelectorAll('#loss polyline').length") == 2,
            "a line for each group")
        program.await_true(lambda: "straggler" in window.text("straggler-list")
                           or "share" in window.text("ladder"), "a straggler")
        self.assertTrue(window.is_shown("job"))
        self.assertIn("process-test", window.text("job"))
        for view, word in [("group-list", "worker-0"), ("group-list", "zone-a/rack-"),
                           ("rack-list", "zone-a/rack-0"), ("rack-list", "of 2"),
                           ("table-list", "buffered"), ("node-list", "server-0"),
                           ("node-list", _HOSTILE), ("event-list", "created"),
                           ("snapshot-list", "no snapshots"), ("legend", "group 1")]:
            program.await_true(lambda: word in window.text(view), f"{word} in {view}")
        self.assertGreater(window.run("return document.querySelectorAll('.cell.head').length"), 1)
        self.assertEqual(0, window.run("return document.querySelectorAll('main img').length"))
        self.picture(window, "dashboard-before")

        running.servers[1].signal(signal.SIGKILL)
        program.await_true(lambda: "server-1 is dead" in window.text("problems"), "a dead server")
        self.assertEqual("unhealthy", window.text("health"))
        self.picture(window, "dashboard-during")
        running.start_server(1)
        program.await_true(lambda: window.text("health") == "healthy", "health again")
        program.await_true(lambda: "server-1" in window.text("event-list"), "its event")
        self.picture(window, "dashboard-after")
        self.assert_clean(window, port)

        # A reload keeps the history, and an event can be found.
        before = window.run("return points.length")
        window.driver.refresh()
        program.await_true(lambda: window.run("return points.length") >= before, "the history")
        window.run("document.getElementById('event-filter').value = 'server-1';"
                   "document.getElementById('event-filter').dispatchEvent(new Event('input'))")
        self.assertNotIn("created", window.text("event-list"))

        # The scheduler dies, and comes back.
        running.scheduler.signal(signal.SIGKILL)
        program.await_true(lambda: "No scheduler answers since" in window.text("contact"), "a banner")
        self.assertIn("server-0", window.text("node-list"))
        running.restart_scheduler()
        program.await_true(lambda: not window.is_shown("contact"), "contact again")

        dashboard.signal(signal.SIGTERM)
        program.await_true(lambda: "does not answer" in window.text("contact"), "another banner")

    def test_a_page_without_the_token(self):
        _, port, _ = self.start_dashboard("127.0.0.1:1")
        window = browser.Browser(self)
        window.open(f"http://127.0.0.1:{port}/")
        program.await_true(lambda: "no valid token" in window.text("contact"), "an explanation")


def invented(count):
    """A state of this many nodes, one of them with a hostile name."""
    nodes = [{"id": i, "name": f"worker-{i}", "role": "worker", "state": "alive", "silent_ms": 40,
              "host": f"host-{i}", "process": i, "labels": f"zone/rack-{i % 40}", "note": "",
              "step": 30, "samples_per_second": 10, "aside": 0, "slowness": 1 + i / count,
              "seconds_per_sample": 0.01, "pace": "steady",
              "times": {"input": 0.1, "computation": 0.5, "group": 0.2, "servers": 0.2}}
             for i in range(1, count + 1)]
    nodes[0].update(name=_HOSTILE, state="dead", note=_HOSTILE)
    groups = [{"id": g, "state": "active", "reason": "", "generation": 1,
               "members": list(range(4 * g + 1, 4 * g + 5)), "shares": [], "minimum_members": 0,
               "grace_ms": 0, "started": True, "step": 30, "samples": 900,
               "samples_per_second": 40, "loss": 0.3, "staleness": 1, "stragglers": 0,
               "times": nodes[0]["times"]} for g in range(count // 4)]
    table = {"name": "weights" * 20, "shape": "784x128", "contract": "ssp:3", "contract_epoch": 4,
             "optimizer": "sgd", "durability": "replicated 2", "replication": "whole",
             "whole": True, "replicas": 3, "updates": 10, "discarded": 0, "staleness": 1,
             "implicit_momentum": 0.5, "explicit_momentum": 0.4, "target_momentum": 0.9,
             "bound": 3, "shards": [[[i, 0], [i + 1, 1]] for i in range(1, 900)]}
    return {
        "now": 60000, "sequence": 99,
        "contact": {"connected": True, "since": 0, "last": 60000, "error": "", "restarts": 1},
        "state": {"job": "large", "epoch": 5, "uptime_ms": 60000, "healthy": False,
                  "problems": [f"{_HOSTILE} is dead"], "waiting_for": "", "insecure": True,
                  "durability": "durability memory", "at_risk": 12, "quarantined": [],
                  "nodes": nodes, "groups": groups, "tables": [table], "snapshots": [
                      {"id": 1, "folder": "snapshot-000001-e5", "state": "complete", "reason": "",
                       "bytes": 5000, "reused_bytes": 0, "shards_written": 4, "shards": 4,
                       "took_ms": 300}]},
        "events": [{"n": i, "at": 100 * i, "kinds": ["node"], "text": f"{_HOSTILE} {i}"} for i in range(500)],
        "points": [{"n": i, "at": 100 * i, "sum": 9.0 + i % 7, "groups": {
            str(g): [5 + g, 1 / (i + 1), 8 * i] for g in range(12)}} for i in range(600)],
    }


@unittest.skipIf(browser.MISSING, browser.MISSING)
class InventedTest(DashboardTest):
    """The page with a state that no small cluster has."""

    def serve(self, answer):
        body = json.dumps(answer).encode()
        types = {"html": "text/html", "js": "text/javascript", "css": "text/css",
                 "svg": "image/svg+xml"}

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                name = self.path.split("?")[0].lstrip("/") or "page.html"
                content = body if name.startswith("api/") else (_FILES / name).read_bytes()
                self.send_response(200)
                self.send_header("Content-Type", types.get(name.split(".")[-1], "application/json"))
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *arguments):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.shutdown)
        return server.server_address[1]

    def test_a_thousand_nodes(self):
        port = self.serve(invented(1000))
        window = browser.Browser(self, height=1300)
        window.open(f"http://127.0.0.1:{port}/#{'0' * 32}")
        program.await_true(lambda: window.text("job") == "large", "the state")
        self.assertTrue(window.is_shown("insecure"))
        self.assertIn("12", window.text("tiles"))
        # Text of the cluster is text.
        self.assertIn(_HOSTILE, window.text("node-list"))
        self.assertIn(_HOSTILE, window.text("event-list"))
        self.assertEqual(0, window.run("return document.querySelectorAll('main img').length"))
        self.assertLess(window.run("return document.querySelectorAll('*').length"), 8000)
        # A drawing takes far less than the second between two.
        before = window.processor_seconds()
        window.run("for (let i = 0; i < 5; ++i) { show(last); document.body.offsetHeight; }")
        self.assertLess((window.processor_seconds() - before) / 5, 0.5)
        self.assertIn("50 of 1,000", window.text("node-count"))
        window.run("document.getElementById('node-more').click()")
        self.assertIn("100 of 1,000", window.text("node-count"))

        for width in (400, 1280):
            for scheme in ("light", "dark"):
                window.resize(width, 900)
                window.color_scheme(scheme)
                self.assertEqual(width, window.run("return window.innerWidth"))
                self.assertLessEqual(
                    window.run("return document.documentElement.scrollWidth"), width)
                self.picture(window, f"invented-{width}-{scheme}")
        self.assert_clean(window, port)

    def test_racks(self):
        answer = invented(12)
        state = answer["state"]
        for node in state["nodes"]:
            node.update(state="alive", labels=f"zone/rack-{node['id'] % 2}/host", samples_per_second=10)
        servers = [{**state["nodes"][0], "id": 100 + i, "name": f"server-{i}", "role": "server",
                    "labels": ["zone/rack-0", "zone/rack-1", "//host"][i], "bytes": 1 << 20,
                    "samples_per_second": 0} for i in range(3)]
        servers[1]["state"] = "dead"
        state["nodes"] += servers
        # In two racks; in one, where the other is being filled; in that which has no name.
        state["tables"][0].update(replicas=2, shards=[
            [[100, 0], [101, 0]], [[100, 0], [101, 1]], [[102, 0]]])
        window = browser.Browser(self, height=1300)
        window.open(f"http://127.0.0.1:{self.serve(answer)}/#{'0' * 32}")
        program.await_true(lambda: window.text("job") == "large", "the state")
        rows = window.run("return [...document.querySelectorAll('#rack-list tbody tr')].map("
                          "row => [...row.children].map((cell, i) => i == 1 ? cell.querySelectorAll('.cell').length"
                          " : cell.innerText))")
        self.assertEqual([
            ["no rack", 1, "–", "0", "1 MiB", "1 + 0", "1"],
            ["zone/rack-0", 7, "group 0: 2 of 4, group 1: 2 of 4, group 2: 2 of 4", "60", "1 MiB", "2 + 0", "1"],
            ["zone/rack-1", 7, "group 0: 2 of 4, group 1: 2 of 4, group 2: 2 of 4", "60", "1 MiB", "0 + 1", "0"],
        ], rows)
        self.assertEqual(1, window.run("return document.querySelectorAll('#rack-list .dead').length"))
        self.assertEqual("server-1 dead", window.run("return document.querySelector('#rack-list .dead').title"))
        self.assertEqual(["1 nodes, 0 dead", "7 nodes, 0 dead", "7 nodes, 1 dead"], window.run(
            "return [...document.querySelectorAll('#rack-list .shards')].map(map => map.ariaLabel)"))
        self.assertEqual("shard 0: server-0 (zone/rack-0) head, server-1 (zone/rack-1) full",
                         window.run("return document.querySelector('#replica-map .chain').title"))
        self.picture(window, "invented-racks")

    def test_the_keyboard_reaches_everything(self):
        port = self.serve(invented(120))
        window = browser.Browser(self)
        window.open(f"http://127.0.0.1:{port}/#{'0' * 32}")
        program.await_true(lambda: window.text("job") == "large", "the state")
        reached = set()
        body = window.driver.switch_to
        for _ in range(40):
            body.active_element.send_keys("\ue004")  # Tab
            reached.add(window.run("const e = document.activeElement;"
                                   "return e.id || e.getAttribute('href') || e.tagName"))
        self.assertLessEqual({"#" + view for view in _VIEWS} | {
            "#main", "node-filter", "node-more", "event-filter", "event-list", "group-list",
            "replica-map"}, reached)


if __name__ == "__main__":
    report.main()
