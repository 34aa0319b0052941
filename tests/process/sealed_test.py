# SPDX-License-Identifier: Apache-2.0
"""A secured job over TCP: its messages are sealed, and it trains the same bits as one process."""

import re
import signal
import subprocess

from tests import report
from tests.process import cluster, program, wire, zmtp

_WORKER = program.built("tests/process/bit_equality_worker")
_REFERENCE = program.built("tests/process/bit_equality_reference")
_MEMBERS = 2
_WEIGHTS = re.compile(r"weights \w+ [0-9a-f]{8}")


def weights(text):
    return sorted(_WEIGHTS.findall(text))


class SealedTest(cluster.ProcessTest):
    def setUp(self):
        super().setUp()
        self.running = cluster.Cluster(self, servers=2, workers=_MEMBERS,
                                       tls=cluster.certificates(self),
                                       server_options=["--transport", "tcp"])

    def start_workers(self, **environment):
        return [self.start(f"worker-{rank}", [_WORKER],
                           {**self.running.environment(rank), "COVEY_TRANSPORT": "tcp",
                            "COVEY_REPLICAS": "2", **environment})
                for rank in range(_MEMBERS)]

    def test_trains_the_same_bits_when_a_server_dies(self):
        expected = weights(subprocess.run([_REFERENCE, str(_MEMBERS)], capture_output=True,
                                          text=True, timeout=120, check=True).stdout)
        self.assertEqual(3, len(expected))
        workers = self.start_workers(COVEY_PAUSE="300ms")
        workers[0].await_line("step.*number.*4")
        self.running.servers[1].signal(signal.SIGKILL)
        for worker in workers:
            self.assertEqual(0, worker.exit_code(120), worker)
            self.assertEqual(expected, weights("\n".join(worker.lines("stdout"))), worker)
        # Nothing that was sent has been refused.
        self.assertEqual([0], cluster.malformed(self.running.status()))

    def test_an_unsealed_message_is_refused(self):
        status = self.running.status()
        before = cluster.malformed(status)
        [port] = cluster.ports(cluster.nodes(status, "SERVER")[0])
        envelope = wire.envelope(wire.PULL_REQUEST, wire.pull(table=1),
                                 job=int(status["view"]["job"]), node=2)
        with zmtp.Peer(port) as peer:
            peer.send_message([wire.head(envelope)])
            self.running.await_status(
                lambda status: cluster.malformed(status)[0] == before[0] + 1, "malformed to grow")
        self.running.servers[0].await_line("messages_refused.*not sealed")


if __name__ == "__main__":
    report.main()
