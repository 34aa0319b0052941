# SPDX-License-Identifier: Apache-2.0
"""The manifests of deploy/kubernetes: what they render to, whether the API takes it, whether they fit.

Nothing here proves admission, scheduling or volumes, which takes a cluster.
"""

import functools
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import threading
import unittest

import yaml

from tests import report
from tests.deploy import kustomization
from tests.process import cluster

try:
    import kubernetes_validate
except ImportError:
    kubernetes_validate = None

_ROOT = pathlib.Path(__file__).parents[2]
_OVERLAYS = sorted((_ROOT / "deploy/kubernetes/overlays").iterdir())
_KUBECTL = shutil.which("kubectl")
# The oldest version with every field that the manifests have.
_API_VERSION = "1.33"
_PROGRAMS = {"covey_scheduler": cluster.SCHEDULER, "covey_server": cluster.SERVER,
             "fashion_mnist": cluster.FASHION_MNIST}
# Read by common/runtime/topology_labels.h, and by ConfigFile.
_OF_NO_PROGRAM = {"COVEY_ZONE", "COVEY_CONFIG"}


def _seconds(text):
    return int(re.fullmatch(r"(\d+)s", text).group(1))


def _rendered():
    return [(overlay, kustomization.render(overlay)) for overlay in _OVERLAYS]


def _find(objects, kind, name):
    [found] = [each for each in objects if kustomization.name_of(each) == f"{kind} {name}"]
    return found


@functools.cache
def _options(program):
    shown = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"--([\w-]+)", shown))


def _pretty_node(labels):
    """A node in the words of the API's server with ?pretty=true."""
    return json.dumps({"kind": "Node", "metadata": {
        "managedFields": [{"fieldsV1": {"f:metadata": {"f:labels": {
            f"f:{name}": {} for name in labels}}}}],
        "labels": labels, "name": "node-1"}}, indent=2)


class ManifestsTest(unittest.TestCase):
    maxDiff = None

    def test_they_render_to_what_was_reviewed(self):
        self.assertEqual(["production", "standby", "trial"],
                         [overlay.name for overlay in _OVERLAYS])
        for overlay, objects in _rendered():
            golden = pathlib.Path(__file__).parent / f"golden/{overlay.name}.yaml"
            self.assertEqual(golden.read_text(), kustomization.text_of(objects),
                             "if that is meant: /usr/bin/python3 -m tests.deploy.kustomization "
                             f"deploy/kubernetes/overlays/{overlay.name} > "
                             f"tests/deploy/golden/{overlay.name}.yaml")

    @unittest.skipUnless(_KUBECTL, "needs kubectl")
    def test_kubectl_renders_the_same(self):
        # Bazel's files are links to places that kubectl does not follow.
        copy = pathlib.Path(self.enterContext(
            tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")))) / "kubernetes"
        shutil.copytree(_ROOT / "deploy/kubernetes", copy)
        for overlay, objects in _rendered():
            run = subprocess.run([_KUBECTL, "kustomize", copy / "overlays" / overlay.name],
                                 capture_output=True, text=True)
            self.assertEqual("", run.stderr)
            self.assertEqual(kustomization.text_of(objects),
                             kustomization.text_of(yaml.safe_load_all(run.stdout)))

    @unittest.skipUnless(kubernetes_validate, "needs kubernetes-validate, for Python")
    def test_the_api_takes_them(self):
        checked = 0
        for _, objects in _rendered():
            for found in objects:
                # Its kinds are not those of Kubernetes.
                if not found["apiVersion"].startswith("cert-manager.io/"):
                    kubernetes_validate.validate(found, _API_VERSION, strict=True)
                    checked += 1
        self.assertGreater(checked, 30)

    def test_numbers_agree(self):
        for _, objects in _rendered():
            settings = _find(objects, "ConfigMap", "covey")["data"]
            server = _find(objects, "StatefulSet", "covey-server")["spec"]
            workers = _find(objects, "Job", "covey-worker")["spec"]
            self.assertEqual(int(settings["COVEY_SERVERS"]), server["replicas"])
            self.assertEqual(int(settings["COVEY_GROUPS"]) * int(settings["COVEY_WORKERS"]),
                             workers["completions"])
            self.assertEqual(workers["parallelism"], workers["completions"])
            # A table has 2 replicas unless it says otherwise.
            self.assertLess(_find(objects, "PodDisruptionBudget",
                                  "covey-server")["spec"]["maxUnavailable"], 2)
            for name in ("covey-scheduler", "covey-server"):
                pod = kustomization.pod_of(_find(objects, "StatefulSet", name))
                self.assertLess(_seconds(settings["COVEY_DRAIN_DEADLINE"]),
                                pod["terminationGracePeriodSeconds"])
            schedulers = _find(objects, "StatefulSet", "covey-scheduler")["spec"]["replicas"]
            self.assertEqual([f"covey-scheduler-{number}.covey-scheduler:7070"
                              for number in range(schedulers)],
                             settings["COVEY_SCHEDULER"].split(","))

    def test_ports_agree(self):
        for _, objects in _rendered():
            for found in objects:
                for container in kustomization.containers(found):
                    names = {port["name"]: port["containerPort"]
                             for port in container.get("ports", [])}
                    for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
                        if kind not in container:
                            continue
                        [how] = {"tcpSocket", "httpGet"} & set(container[kind])
                        self.assertIn(container[kind][how]["port"], names)
                        if how == "httpGet":
                            self.assertEqual("metrics", container[kind][how]["port"])
                            self.assertIn(container[kind][how]["path"], ("/livez", "/readyz"))
                    if names:
                        settings = _find(objects, "ConfigMap", "covey")["data"]
                        self.assertEqual(f"0.0.0.0:{names.pop('metrics')}",
                                         settings["COVEY_METRICS"])
                    given = dict(argument.removeprefix("--").split("=", 1)
                                 for argument in container.get("args", []))
                    if "data-port" in given:
                        first = int(given["data-port"])
                        self.assertEqual(list(range(first, first + int(given["loops"]))),
                                         list(names.values()))
                    elif "port" in given:
                        self.assertEqual([int(given["port"])], list(names.values()))

    def test_a_standby_is_ready(self):
        """Otherwise an update of the schedulers waits for it."""
        for _, objects in _rendered():
            [scheduler] = kustomization.containers(_find(objects, "StatefulSet", "covey-scheduler"))
            self.assertEqual({"port": "control"}, scheduler["readinessProbe"]["tcpSocket"])

    def test_prometheus_reaches_the_pods(self):
        """With components/monitoring, which needs the operator and is in no overlay."""
        folder = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
        self.addCleanup(shutil.rmtree, folder)
        shutil.copytree(_ROOT / "deploy/kubernetes", folder / "kubernetes")
        overlay = folder / "kubernetes/overlays/trial"
        settings = (overlay / "kustomization.yaml").read_text()
        added = settings.replace("components:\n", "components:\n  - ../../components/monitoring\n")
        (overlay / "kustomization.yaml").unlink()
        (overlay / "kustomization.yaml").write_text(added)
        objects = kustomization.render(overlay)
        monitor = _find(objects, "PodMonitor", "covey")["spec"]
        policy = _find(objects, "NetworkPolicy", "covey-metrics")["spec"]
        [endpoint] = monitor["podMetricsEndpoints"]
        [[port]] = [rule["ports"] for rule in policy["ingress"]]
        self.assertEqual(endpoint["port"], port["port"])
        # A pod without a port of this name is not scraped.
        scraped = [name for each in objects if kustomization.pod_of(each)
                   for name in [kustomization.name_of(each)]
                   if monitor["selector"]["matchLabels"].items()
                   <= each["spec"]["template"]["metadata"]["labels"].items()
                   and any(own["name"] == port["port"] for container in kustomization.containers(each)
                           for own in container.get("ports", []))]
        self.assertEqual(["StatefulSet covey-scheduler", "StatefulSet covey-server",
                          "Job covey-worker"], scraped)
        # The series' label `job`, by which alerts and dashboard choose.
        self.assertEqual("covey", monitor["selector"]["matchLabels"][monitor["jobLabel"]])

    def test_programs_know_every_setting(self):
        for _, objects in _rendered():
            settings = set(_find(objects, "ConfigMap", "covey")["data"])
            known = set()
            for found in objects:
                for container in kustomization.containers(found):
                    program = _PROGRAMS.get(container["command"][0])
                    if program is None:
                        continue
                    options = _options(program)
                    for argument in container.get("args", []):
                        self.assertIn(argument.split("=")[0].removeprefix("--"), options)
                    variables = {"COVEY_" + option.upper().replace("-", "_") for option in options}
                    known |= variables
                    for variable in container["env"]:
                        if variable["name"].startswith("COVEY_"):
                            self.assertIn(variable["name"],
                                          variables | {"COVEY_RANK"} | _OF_NO_PROGRAM)
            self.assertEqual(set(), settings - known)

    def test_pods_may_do_little(self):
        """The profile `restricted`, and what it does not ask for."""
        for overlay, objects in _rendered():
            pods = 0
            for found in objects:
                pod = kustomization.pod_of(found)
                if pod is None:
                    continue
                pods += 1
                self.assertTrue(pod["securityContext"]["runAsNonRoot"])
                self.assertEqual("RuntimeDefault", pod["securityContext"]["seccompProfile"]["type"])
                reads_labels = any(each["name"] == "read-labels"
                                   for each in pod.get("initContainers", []))
                self.assertEqual(reads_labels, pod["automountServiceAccountToken"])
                for container in kustomization.containers(found):
                    context = container["securityContext"]
                    self.assertFalse(context["allowPrivilegeEscalation"])
                    self.assertTrue(context["readOnlyRootFilesystem"])
                    self.assertEqual(["ALL"], context["capabilities"]["drop"])
                    self.assertIn("memory", container["resources"]["limits"])
                    self.assertRegex(container["image"], r":\d+\.\d+\.\d+$")
                is_secured = any(volume["name"] == "certificate"
                                 for volume in pod.get("volumes", []))
                self.assertEqual(overlay.name != "trial", is_secured)
            self.assertEqual(4, pods)

    def test_selectors_find_their_pods(self):
        for _, objects in _rendered():
            templates = [each["spec"]["template"] for each in objects if kustomization.pod_of(each)]
            for found in objects:
                spec = found.get("spec", {})
                selector = spec.get("selector") if found["kind"] == "Service" else (
                    spec.get("selector", {}).get("matchLabels"))
                if not selector:
                    continue
                chosen = [template for template in templates
                          if selector.items() <= template["metadata"]["labels"].items()]
                self.assertEqual(1, len(chosen), kustomization.name_of(found))

    def test_certificates_are_of_the_job(self):
        objects = kustomization.render(_ROOT / "deploy/kubernetes/overlays/production")
        job = _find(objects, "ConfigMap", "covey")["data"]["COVEY_JOB"]
        secrets = set()
        for role in ("scheduler", "server", "worker", "client"):
            spec = _find(objects, "Certificate", f"covey-{role}")["spec"]
            self.assertEqual([f"spiffe://covey/job/{job}/role/{role}"], spec["uris"])
            self.assertEqual(role == "scheduler", "server auth" in spec["usages"])
            self.assertIn("client auth", spec["usages"])
            secrets.add(spec["secretName"])
        mounted = set(re.findall(r"(?:secretName|name): (covey-(?:scheduler|server|worker|client))$",
                                 "\n".join(yaml.safe_dump(kustomization.pod_of(each)["volumes"])
                                           for each in objects if kustomization.pod_of(each)),
                                 re.M))
        self.assertEqual(secrets, mounted)


@unittest.skipUnless(shutil.which("curl"), "needs curl")
class RacksTest(cluster.ProcessTest):
    """The script of components/racks, against a server that answers like the API's."""

    def labels_of(self, labels):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                good = (self.path == "/api/v1/nodes/node-1?pretty=true"
                        and self.headers["Authorization"] == "Bearer secret")
                self.send_response(200 if good else 403)
                self.end_headers()
                self.wfile.write(_pretty_node(labels).encode())

            def log_message(self, *_):
                pass

        api = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=api.serve_forever, daemon=True).start()
        self.addCleanup(api.server_close)
        self.addCleanup(api.shutdown)
        objects = kustomization.render(_ROOT / "deploy/kubernetes/overlays/production")
        racks = _find(objects, "ConfigMap", "covey-racks")["data"]
        folder = pathlib.Path(self.folder)
        (folder / "token").write_text("secret")
        settings = folder / "labels.yaml"
        run = subprocess.run(["/bin/sh", "-c", racks["read-labels"]], capture_output=True, text=True,
                             env={**os.environ, "API": f"http://127.0.0.1:{api.server_port}",
                                  "ACCOUNT": str(folder), "NODE_NAME": "node-1",
                                  "RACK_LABEL": racks["RACK_LABEL"], "no_proxy": "*",
                                  "COVEY_CONFIG": str(settings)})
        self.assertEqual(0, run.returncode, run)
        shown = self.run_to_end("server", [cluster.SERVER, "--config", settings, "--print-config"])
        self.assertEqual(0, shown.code, shown)
        return shown.await_line(r"^labels: (\S+)").group(1).strip('"')

    def test_a_node_with_labels(self):
        self.assertEqual("zone-b/rack-7/node-1", self.labels_of({
            "kubernetes.io/hostname": "node-1", "topology.kubernetes.io/rack": "rack-7",
            "topology.kubernetes.io/zone": "zone-b"}))

    def test_a_node_without(self):
        self.assertEqual("//node-1", self.labels_of({"kubernetes.io/hostname": "node-1"}))


if __name__ == "__main__":
    report.main()
