# SPDX-License-Identifier: Apache-2.0
"""The network with injected faults really has them, between real sockets."""

import json
import re
import sys

from tests import report
from tests.process import cluster, network, program

_TRANSPORTS = program.built("tests/relay/relayed_transports")
_ECHO = """
import socket
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind((%r, 0))
print("port", sock.getsockname()[1], flush=True)
while True:
    packet, sender = sock.recvfrom(65536)
    sock.sendto(packet, sender)
"""
# Sends packets at a steady pace, and reports the round-trip time of each; null = lost.
_PROBE = """
import json, select, socket, time
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sent, came, copies = {}, {}, 0
def take(seconds):
    global copies
    deadline = time.monotonic() + seconds
    while select.select([sock], [], [], max(0, deadline - time.monotonic()))[0]:
        index = int(sock.recv(65536).split()[0])
        copies += index in came
        came.setdefault(index, time.monotonic() - sent[index])
for index in range(%d):
    sent[index] = time.monotonic()
    sock.sendto(b"%%d " %% index + bytes(%d), (%r, %d))
    take(%r)
take(1)
print(json.dumps({"times": [came.get(index) for index in sent], "copies": copies}))
"""


class RelayTest(cluster.ProcessTest):
    def setUp(self):
        super().setUp()
        self.relayed = network.Relayed(self, ["a", "b", "c"], seed=7)

    def _python(self, name, code):
        node = self.relayed.nodes[name]
        return self.start(f"python on {name}", [*node.command(), sys.executable, "-c", code])

    def _echo(self, name):
        echo = self._python(name, _ECHO % self.relayed.nodes[name].address)
        return int(echo.await_line(r"port (\d+)").group(1))

    def _probe(self, source, target, port, packets=100, payload=100, pause=0.002):
        address = self.relayed.nodes[target].address
        probe = self._python(source, _PROBE % (packets, payload, address, port, pause))
        self.assertEqual(0, probe.exit_code(), probe)
        answer = json.loads(probe.lines("stdout")[-1])
        answer["came"] = sorted(time for time in answer["times"] if time is not None)
        return answer

    def test_passes_everything_when_nothing_is_wrong(self):
        answer = self._probe("a", "b", self._echo("b"))
        self.assertEqual(100, len(answer["came"]))
        self.assertEqual(0, answer["copies"])
        counts = self.relayed.counts()
        self.assertEqual(200, counts["delivered"])
        self.assertEqual(0, counts["lost"] + counts["blocked"])

    def test_delays(self):
        port = self._echo("b")
        self.relayed.fault("delay", "*", by="20ms")
        answer = self._probe("a", "b", port)
        # Never sooner; later only because machines are busy.
        self.assertGreaterEqual(answer["came"][0], 0.040)
        self.relayed.heal()
        healed = self._probe("a", "b", port)
        self.assertEqual(100, len(healed["came"]))
        if report.speeds_count():
            self.assertLess(answer["came"][50], 0.140)
            self.assertLess(healed["came"][50], 0.040)

    def test_loses_and_duplicates(self):
        port = self._echo("b")
        self.relayed.fault("loss", "a", other="b", chance=0.3)
        answer = self._probe("a", "b", port, packets=1000, pause=0.001)
        # 700 are expected; five standard deviations are 72.
        self.assertLess(abs(len(answer["came"]) - 700), 73)
        self.relayed.heal()
        self.relayed.fault("duplicate", "a", chance=0.5)
        answer = self._probe("a", "b", port, packets=1000, pause=0.001)
        self.assertEqual(1000, len(answer["came"]))
        self.assertLess(abs(answer["copies"] - 500), 80)

    def test_blocks_one_way(self):
        echo_b, echo_c = self._echo("b"), self._echo("c")
        self.relayed.fault("one-way-partition", "b", other="a")
        before = self.relayed.counts()
        self.assertEqual([], self._probe("a", "b", echo_b, packets=20)["came"])
        after = self.relayed.counts()
        # The packets arrived; the answers did not.
        self.assertEqual(20, after["delivered"] - before["delivered"])
        self.assertEqual(20, after["blocked"] - before["blocked"])
        self.assertEqual(20, len(self._probe("a", "c", echo_c, packets=20)["came"]))
        self.relayed.heal()
        self.assertEqual(20, len(self._probe("a", "b", echo_b, packets=20)["came"]))

    def test_a_fault_ends_by_itself(self):
        port = self._echo("b")
        self.relayed.fault("isolate", "b", seconds=0.5)
        answer = self._probe("a", "b", port, packets=200, pause=0.01)
        self.assertIsNone(answer["times"][0])
        self.assertIsNotNone(answer["times"][-1])

    def test_a_corrupt_packet_never_reaches_a_program(self):
        port = self._echo("b")
        self.relayed.fault("corrupt", "a", chance=1)
        self.assertEqual([], self._probe("a", "b", port, packets=20)["came"])
        self.assertEqual(20, self.relayed.counts()["corrupted"])

    def test_refuses_what_it_cannot_do(self):
        for fault, reason in ((("kill", "a"), "cannot kill"), (("isolate", "d"), "no node"),
                              (("los", "a"), "did you mean")):
            with self.assertRaisesRegex(AssertionError, reason):
                self.relayed.fault(*fault)

    def test_transports_keep_their_promises(self):
        """The suite of all transports, between machines whose network is bad."""
        self.relayed.fault("loss", "*", chance=0.01)
        self.relayed.fault("duplicate", "*", chance=0.05)
        self.relayed.fault("corrupt", "*", chance=0.005)
        self.relayed.fault("jitter", "*", by="1ms")
        suite = self.run_to_end("relayed_transports", [
            _TRANSPORTS, *(f"{node.address}={node.path}" for node in self.relayed.nodes.values())],
            seconds=600)
        self.assertEqual(0, suite.code, suite)
        [passed] = [re.search(r"\[  PASSED  \] (\d+) tests", line)
                    for line in suite.lines("stdout") if "PASSED" in line]
        counts = self.relayed.counts()
        print(f"{passed.group(1)} tests passed; {counts}", flush=True)
        self.assertGreaterEqual(int(passed.group(1)), 13)
        # Otherwise there was nothing to bear.
        for fate in ("lost", "duplicated", "corrupted"):
            self.assertGreater(counts[fate], 20)


if __name__ == "__main__":
    report.main()
