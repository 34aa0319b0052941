# SPDX-License-Identifier: Apache-2.0
"""Three hosts with a secured job, by the five commands of docs/SECURITY.md: word by word.

Hosts are network namespaces on a bridge (network.py). What passes the bridge shows nothing of the
tensors, and a wrong step is answered with the right one.
"""

import os
import re
import sys
import time

from tests import report
from tests.process import cluster, ledger, network, openssl, program

_PAGE = program.built("docs/SECURITY.md")
_CAPTURE = program.built("tests/process/capture.py")
# "covey_server ...   # on 10.0.0.2, ..."
_LINE = re.compile(r"(?P<command>.*?)\s+# on (?P<host>any host|[\d.]+)")
# The gradient of each step, as ledger_worker pushes it: -1 in float32, again and again.
_TENSOR = b"\x00\x00\x80\xbf" * 64
_TABLE = b"ledger/group"
_STEPS = 50
_HOUR = 3600


def recipe():
    """[(host or None, command)] of the page."""
    with open(_PAGE, encoding="utf-8") as page:
        section = page.read().partition("\n## A secured job\n")[2]
    block = section.split("```\n")[1]
    found = [_LINE.match(line) for line in block.splitlines()]
    return [(None if line["host"] == "any host" else line["host"], line["command"])
            for line in found]


class SecuredHostsTest(cluster.ProcessTest):
    def setUp(self):
        super().setUp()
        self.recipe = recipe()
        hosts = [host for host, _ in self.recipe if host is not None]
        self.network = network.Hosts(self, hosts)
        self.hosts = dict(zip(hosts, self.network.nodes))
        # As after an installation; ./train is the user's program.
        binaries = os.path.join(self.folder, "bin")
        os.mkdir(binaries)
        for path in (cluster.COVEY, cluster.SCHEDULER, cluster.SERVER):
            os.symlink(path, os.path.join(binaries, os.path.basename(path)))
        os.symlink(ledger.WORKER, os.path.join(self.folder, "train"))
        self.environment = {"PATH": f"{binaries}:{os.environ['PATH']}", "COVEY_REPLICAS": "1"}

    def type(self, host, command, **environment):
        """Starts a command line in this folder, on a host."""
        where = self.hosts[host].command() if host else []
        return self.start(command.split()[0], [
            *where, "bash", "-c", f"cd {self.folder} && exec env {command}"],
                          {**self.environment, **environment})

    def type_and_wait(self, host, command, code, **environment):
        child = self.type(host, command, **environment)
        self.assertEqual(code, child.exit_code(), child)
        return child

    def type_all(self, change=lambda command: command, **environment):
        """Types the recipe; returns the processes of the cluster."""
        running = []
        for host, command in self.recipe:
            if host is None:
                self.type_and_wait(None, command, 0)
            else:
                running.append(self.type(host, change(command), **environment))
        return running

    def capture(self, trained):
        """All bytes on the bridge until `trained` has made some steps."""
        path = os.path.join(self.folder, "packets")
        tap = self.start("capture", [*self.network.switch.command(), sys.executable, _CAPTURE, path])
        tap.await_line("capturing")
        before = trained.count('"event":"step"')
        trained.await_line('"event":"step"', count=before + _STEPS)
        tap.close_input()
        self.assertEqual(0, tap.exit_code(), tap)
        with open(path, "rb") as file:
            return file.read()

    def test_five_commands_and_nothing_to_read(self):
        self.assertLessEqual(len(self.recipe), 5)
        *_, trained = running = self.type_all()
        trained.await_line('"event":"step"')
        packets = self.capture(trained)
        print(f"secured: {len(packets)} bytes on the bridge", flush=True)
        # Heads of messages are in the clear, and nothing after them.
        self.assertIn(b"CVEY\x01\x01", packets)
        self.assertNotIn(_TENSOR, packets)
        self.assertNotIn(_TABLE, packets)
        # The last command of the page's section.
        shown = self.type_and_wait(self.recipe[-1][0], f"covey status --scheduler {self.address()} "
                                   "--tls certs/viewer", 0)
        self.assertEqual(2, shown.count(r"^(server|worker)-0 +alive"), shown)
        self.assertEqual(0, shown.count("INSECURE"))
        for child in running:
            self.assertTrue(child.running(), child)

    def test_a_wrong_step_is_answered_with_the_right_one(self):
        commands = [command for _, command in self.recipe]
        scheduler, server, train = commands[2:]
        first, second, third = self.hosts
        for command in commands[:2]:
            self.type_and_wait(None, command, 0)
        self.type(first, scheduler)
        for name, dates in (("early", {"begins": time.time() + _HOUR}),
                            ("old", {"ends": time.time() - _HOUR})):
            openssl.sign_again(os.path.join(self.folder, "ca"),
                               os.path.join(self.folder, "certs/server"),
                               os.path.join(self.folder, name), **dates)
        for command in commands[:2]:
            self.type_and_wait(None, command.replace("certs", "others").replace(" ca", " other-ca"), 0)
        status = f"covey status --scheduler {self.address()}"
        away = server + " --join-deadline 1s"
        wrong = [
            (first, re.sub("--tls .*", "", scheduler), 2, "Give --tls DIR"),
            (second, re.sub("--tls .*", "", server), 2, "Give --tls DIR"),
            (third, re.sub("COVEY_TLS=[^ ]*", "", train), 1, "Give --tls DIR"),
            (second, re.sub("--tls [^ ]*", "--insecure", away), 3,
             "that --tls is given to both or to neither"),
            (third, status, 3, "do both or neither have --tls?"),
            (second, server.replace("certs/", "cert/"), 2, "there is no folder cert/server; copy it"),
            (second, server.replace("certs/server", "certs"), 2, "give one of them: .*certs/server"),
            (second, server.replace("certs/server", "ca"), 2,
             "covey certificates issue ca --role ROLE --job JOB --out DIR"),
            (third, f"{status} --tls certs", 1, "give one of them: .*certs/viewer"),
            (second, server.replace("certs/server", "certs/worker"), 2,
             "covey certificates issue CA-DIR --role server --job demo"),
            (first, scheduler.replace("certs/scheduler", "certs/server"), 2,
             "covey certificates issue CA-DIR --role scheduler --job demo"),
            (third, train.replace("certs/worker", "certs/server"), 1,
             "covey certificates issue CA-DIR --role worker --job demo"),
            (third, f"{status} --tls certs/scheduler", 1, "allowed are servers.* viewers, admins"),
            (second, server.replace("--job demo", ""), 2, "give it --job demo, or make its own"),
            (second, server.replace("certs/server", "early"), 2, "set this machine's clock"),
            (second, server.replace("certs/server", "old"), 2, "issue it again with"),
            (second, away.replace("certs/", "others/"), 3, "trust the same roots.* clocks .* agree"),
            (third, f"{status} --tls others/viewer", 3, "trust the same roots.* clocks .* agree"),
            (second, away.replace(":7070", ":7071"), 3, "that the address is right"),
        ]
        for host, command, code, answer in wrong:
            with self.subTest(command):
                run = self.type_and_wait(host, command, code)
                self.assertRegex(run.lines()[-1], answer)
        for host, command in ((second, re.sub("--data-host [^ ]*", "", server)),
                              (third, re.sub("COVEY_DATA_HOST=[^ ]*", "", train))):
            child = self.type(host, command)
            child.await_line("data.host is 127.0.0.1, which other hosts do not reach; .* give it an")
            child.kill()
        os.chmod(os.path.join(self.folder, "certs/worker/node.key"), 0o644)
        run = self.type_and_wait(third, train, 1)
        self.assertRegex(run.lines()[-1], "run: chmod 600 certs/worker/node.key")
        # After each wrong step, the right ones lead to a job that trains.
        os.chmod(os.path.join(self.folder, "certs/worker/node.key"), 0o600)
        self.type(second, server)
        self.type(third, train).await_line('"event":"step"', count=3)

    def test_the_same_without_certificates_can_be_read(self):
        """The control of the test before: the same capture, and the same search."""
        *_, trained = self.type_all(
            lambda command: re.sub(r"--tls \S+|COVEY_TLS=\S+", "", command), COVEY_INSECURE="true")
        trained.await_line('"event":"step"')
        packets = self.capture(trained)
        print(f"plain: {len(packets)} bytes on the bridge", flush=True)
        self.assertIn(b"CVEY\x01\x00", packets)
        self.assertIn(_TENSOR, packets)

    def address(self):
        return re.search(r"--scheduler (\S+)", self.recipe[3][1]).group(1)


if __name__ == "__main__":
    report.main()
