# SPDX-License-Identifier: Apache-2.0
"""`covey doctor`: each mistake is found by its line, with real processes."""

import json
import os
import signal
import subprocess
import unittest

from tests import report
from tests.process import cluster, network, program

# Depend on the machine that runs the test, and on how busy it is.
_OF_MACHINE = ("clock", "cpu", "huge-pages", "memory", "namespaces", "open-files", "silent",
               "socket-buffers")
# Two servers are there, and the worker that the scheduler expects is not.
_NO_WORKER = ("nodes", "warn")


def _with(script):
    """The prefix of a command that sees another machine: `script` has changed /sys, /dev or /proc/sys
    for it alone."""
    return ["unshare", "--mount", "--net", "sh", "-ec", script + '\nexec "$0" "$@"']


def _may_change_the_machine():
    tried = subprocess.run([*_with("mount -t tmpfs none /sys/fs/cgroup"), "true"], check=False,
                           capture_output=True)
    return tried.returncode == 0


def _is_in_a_control_group(line):
    """Whether /proc/self/cgroup has a line that contains this."""
    with open("/proc/self/cgroup", encoding="ascii") as file:
        return any(line in each for each in file)


def _group_file(path, content):
    return f"mkdir -p /sys/fs/cgroup/{os.path.dirname(path)}; echo {content} > /sys/fs/cgroup/{path}\n"


class CliDoctorTest(cluster.ProcessTest):

    def doctor(self, *words, before=()):
        run = self.run_to_end("covey doctor", [*before, cluster.COVEY, "doctor", "-o", "json", *words])
        found = json.loads("".join(run.lines("stdout")))
        self.assertEqual(1 if found["failures"] else 0, run.code, run)
        return found["findings"]

    def finds(self, check, level, remedy, *words, before=()):
        """Exactly one line is not ok, apart from those about this machine."""
        wrong = [finding for finding in self.doctor(*words, before=before)
                 if finding["level"] in ("warn", "fail")
                 and (finding["check"] == check or finding["check"] not in _OF_MACHINE)]
        self.assertEqual([(check, level)], [(each["check"], each["level"]) for each in wrong], wrong)
        self.assertIn(remedy, wrong[0]["remedy"])
        return wrong[0]["seen"]

    def test_of_this_machine(self):
        limited = ["sh", "-c", 'ulimit -n 512; exec "$0" "$@"']
        self.finds("open-files", "fail", "LimitNOFILE=", before=limited)
        self.finds("memory", "fail", "end other programs", "--memory", "100000GiB")
        self.finds("disk", "fail", "make the folder", os.path.join(self.folder, "none"))
        self.finds("disk", "fail", "free room", self.folder, "--disk", "100000GiB")
        roles = cluster.certificates(self)
        self.finds("certificates", "fail", "covey certificates show", "--certificates", self.folder)
        key = os.path.join(roles, "viewer", "node.key")
        os.chmod(key, 0o644)
        seen = self.finds("certificates", "fail", "covey certificates show", "--certificates",
                          os.path.join(roles, "viewer"))
        self.assertIn("chmod 600", seen)

    @unittest.skipUnless(_may_change_the_machine(), "needs root")
    def test_of_the_kernel(self):
        never = os.path.join(self.folder, "never")
        with open(never, "w", encoding="ascii") as file:
            file.write("always madvise [never]\n")
        huge_pages = "/sys/kernel/mm/transparent_hugepage/enabled"
        if os.path.exists(huge_pages):
            self.finds("huge-pages", "warn", "echo madvise",
                       before=_with(f"mount --bind {never} {huge_pages}"))
        self.finds("namespaces", "warn", "--shm-size",
                   before=_with("mount -t tmpfs -o size=64m none /dev/shm"))
        small = "echo '4096 16384 65536' > /proc/sys/net/ipv4/tcp_"
        for buffer in ("rmem", "wmem"):
            seen = self.finds("socket-buffers", "warn", f"net.ipv4.tcp_{buffer}=4096 131072 6291456",
                              before=_with(small + buffer))
            self.assertIn(f"net.ipv4.tcp_{buffer} lets a connection hold 64 KiB", seen)
        self.finds("socket-buffers", "warn", "leave net.ipv4.tcp_moderate_rcvbuf at 1",
                   before=_with("echo 0 > /proc/sys/net/ipv4/tcp_moderate_rcvbuf"))

    @unittest.skipUnless(_may_change_the_machine(), "needs root")
    def test_of_control_groups(self):
        groups = "mount -t tmpfs none /sys/fs/cgroup\n"
        if _is_in_a_control_group("0::/"):
            memory = _group_file("memory.max", 2 << 20) + _group_file("memory.current", 1 << 20)
            seen = self.finds("memory", "fail", "MemoryMax=", before=_with(groups + memory))
            self.assertIn("1.0 MiB free below the limit of the control group", seen)
            seen = self.finds("cpu", "warn", "--loops 1",
                              before=_with(groups + _group_file("cpu.max", "50000 100000")))
            self.assertIn("allows 0.5 of", seen)
        # The first version, which older systems and some containers have.
        if _is_in_a_control_group(":memory:"):
            memory = (_group_file("memory/memory.limit_in_bytes", 2 << 20) +
                      _group_file("memory/memory.usage_in_bytes", 1 << 20))
            self.finds("memory", "fail", "MemoryMax=", before=_with(groups + memory))
        if _is_in_a_control_group(":cpu"):
            cpu = (_group_file("cpu/cpu.cfs_quota_us", 50000) +
                   _group_file("cpu/cpu.cfs_period_us", 100000))
            self.finds("cpu", "warn", "--loops 1", before=_with(groups + cpu))

    def test_of_reaching_a_scheduler(self):
        at = "--scheduler"
        self.finds("names", "fail", "DNS", at, "no-such-host.invalid:7070")
        self.finds("scheduler", "fail", "start the scheduler", at, "127.0.0.1:1")
        roles = cluster.certificates(self)
        viewer = ["--tls", os.path.join(roles, "viewer")]
        plain = cluster.Cluster(self)
        status = plain.status()
        data_port = cluster.ports(cluster.nodes(status, "SERVER")[0])[0]
        self.finds("scheduler", "fail", "its --port", at, f"127.0.0.1:{data_port}")
        self.finds("security", "fail", "leave --tls out", at, plain.address, *viewer)
        secured = cluster.Cluster(self, tls=roles)
        self.finds("security", "fail", "give --tls", at, secured.address)
        os.chmod(os.path.join(roles, "viewer", "node.key"), 0o644)
        self.finds("certificates", "fail", "show", at, secured.address, *viewer)

    def test_of_a_cluster(self):
        running = cluster.Cluster(self, servers=1)
        at = ["--scheduler", running.address]
        running.count()
        findings = self.doctor(*at)
        checks = {each["check"]: each for each in findings}
        self.assertEqual("ok", checks["data-ports"]["level"], findings)
        self.assertIn("job process-test", checks["scheduler"]["seen"])
        wrong = [each for each in self.doctor(*at, "--job", "other") if each["check"] == "job"]
        self.assertEqual(["fail"], [each["level"] for each in wrong])
        running.servers[0].signal(signal.SIGKILL)
        running.await_status(lambda now: not now["summary"]["healthy"], "a dead server")
        dead = [each for each in self.doctor(*at) if "is dead" in each["seen"]]
        self.assertEqual(["start another process in its place"], [each["remedy"] for each in dead])

    def wrong(self, *words, before=()):
        """(check, level) of what is not ok, apart from what is about this machine; and what was seen."""
        found = [each for each in self.doctor(*words, before=before)
                 if each["level"] in ("warn", "fail") and each["check"] not in _OF_MACHINE]
        return ([(each["check"], each["level"]) for each in found],
                {each["check"]: each["seen"] for each in found})

    def test_of_a_cluster_that_trains(self):
        running = cluster.Cluster(self, servers=2, scheduler_options=["--silence-min", "60s"])
        self.start("worker-0", [cluster.SYNTHETIC, "--steps", 1000000, "--milliseconds-per-sample", 5],
                   running.environment(0))
        running.await_status(lambda now: now["summary"]["healthy"] and not now["view"].get("waiting_for"),
                             "a worker")
        at = ["--scheduler", running.address]
        self.assertEqual([], self.wrong(*at)[0])
        self.finds("job", "fail", "correct --job", *at, "--job", "other")
        self.finds("schedulers", "warn", "take over", "--scheduler", running.address + ",127.0.0.1:1")
        running.servers[1].signal(signal.SIGSTOP)
        running.await_status(lambda now: max(int(node.get("silent_ms", 0)) for node in now["nodes"]) > 1600,
                             "a silent server")
        seen = self.finds("silent", "warn", "load and the network", *at)
        self.assertIn("server-1", seen)
        running.servers[1].signal(signal.SIGCONT)

    def test_of_a_cluster_that_lacks_something(self):
        running = cluster.Cluster(self, servers=1)
        at = ["--scheduler", running.address]
        running.count()
        wrong, seen = self.wrong(*at)
        self.assertEqual([_NO_WORKER, ("replicas", "warn")], wrong)
        self.assertIn("worker-0", seen["nodes"])
        unreachable = cluster.Cluster(self, servers=1, server_options=["--advertise-data", "127.0.0.1:1"])
        wrong, seen = self.wrong("--scheduler", unreachable.address)
        self.assertEqual([_NO_WORKER, ("data-ports", "fail")], wrong)
        self.assertIn("server-0 cannot be reached from here at tcp://127.0.0.1:1", seen["data-ports"])

    def test_of_several_hosts(self):
        here, there = network.Hosts(self, ["10.45.0.1", "10.45.0.2"]).nodes
        there.ip("link", "set", "eth", "mtu", "1500")
        port_file = os.path.join(self.folder, "port")
        self.start("scheduler", [*here.command(), cluster.SCHEDULER, "--job", cluster.JOB, "--servers", 2,
                                 "--host", here.address, "--insecure", "--port-file", port_file])
        program.await_true(lambda: os.path.exists(port_file), "a port file")
        with open(port_file, encoding="ascii") as file:
            observer = cluster.Observer(f"{here.address}:{file.read().strip()}", here.command())
        for rank, host in enumerate((here, there)):
            self.start(f"server-{rank}", [
                *host.command(), "unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', host.name,
                cluster.SERVER, "--scheduler", observer.address, "--job", cluster.JOB, "--rank", rank,
                "--data-host", host.address, "--insecure", "--loops", 1, "--labels", "zone/rack/host"])
        observer.await_status(lambda now: len(cluster.nodes(now, "SERVER")) == 2, "two servers")
        wrong, seen = self.wrong("--scheduler", observer.address, before=here.command())
        self.assertEqual([("insecure", "warn"), _NO_WORKER, ("mtu", "warn"), ("labels", "warn")], wrong)
        self.assertEqual("this machine sends packets of 9,000 bytes, and server-1 takes at most 1,500",
                         seen["mtu"])
        self.assertIn("2 hosts", seen["labels"])
        there.ip("link", "set", "eth", "mtu", "9000")
        self.assertNotIn("mtu", self.wrong("--scheduler", observer.address, before=here.command())[1])


if __name__ == "__main__":
    report.main()
