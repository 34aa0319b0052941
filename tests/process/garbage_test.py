# SPDX-License-Identifier: Apache-2.0
"""Bytes from outside never end a process, never make it grow, and are counted where they arrive."""

import os
import random
import socket
import struct

from tests import report
from tests.process import cluster, garbage, heartbeats, http2, program, wire, zmtp

_SEED = 20240229
_HANDSHAKES = 96
_MESSAGES = 200
_CONTROL_CASES = 150
_HALF_OPEN = 60
_FORGERIES = 420
_REPLAYS = 56
_HEARTBEAT_MS = 1000
_CALLS = 5000
# Memory that a flood may leave behind: buffers of a few sockets and one largest message.
# Sanitizers keep what was freed for a while, and notes on the rest (.bazelrc).
_GROWTH_KIB_MAX = (64 << 10) * int(os.environ.get("COVEY_MEMORY_FACTOR", "1"))


def _throw(port, data):
    """Sends over a new connection, which is returned; the other side may close it at any time."""
    connection = socket.create_connection(("127.0.0.1", port), program.PATIENCE_SECONDS)
    try:
        connection.sendall(data)
    except ConnectionError:
        pass
    return connection


class HarmlessGarbage:
    """What every cluster withstands; `make_cluster` starts it."""

    def setUp(self):
        super().setUp()
        self.cluster = self.make_cluster(
            servers=2, workers=2, loops=2,
            # A busy machine delays a heartbeat by this much.
            scheduler_options=["--heartbeat", f"{_HEARTBEAT_MS}ms", "--silence-min", "10s"])
        self.workers = [
            self.start(f"worker-{rank}", [cluster.RING_WORKER], self.cluster.environment(rank))
            for rank in range(2)
        ]
        for worker in self.workers:
            worker.await_line("ready")
        self.sums = 0
        self.assertEqual(1, self.cluster.count())
        self.assert_ring_adds()
        self.programs = [self.cluster.scheduler, *self.cluster.servers, *self.workers]
        self.memory = [each.memory_kib() for each in self.programs]
        self.before = self.cluster.status()
        self.job = int(self.before["view"]["job"])
        self.random = random.Random(_SEED)
        self.half_open = []
        self.addCleanup(lambda: [connection.close() for connection in self.half_open])

    def assert_ring_adds(self):
        self.sums += 1
        for worker in self.workers:
            worker.say("21")
        for worker in self.workers:
            found = worker.await_line(r'\bvalue\W+(\d+)', count=self.sums)
            self.assertEqual("42", found.group(1), worker)

    def assert_unharmed(self):
        for each in self.programs:
            self.assertTrue(each.running(), each)
        self.assertEqual(2, self.cluster.count())
        self.assert_ring_adds()
        status = self.cluster.status()
        self.assertEqual(self.before["view"]["groups"], status["view"]["groups"])
        for each, before in zip(self.programs, self.memory):
            grown = each.memory_kib() - before
            print(f"{each.name}: {before} KiB, grown by {grown} KiB")
            self.assertLess(grown, _GROWTH_KIB_MAX, each)

    def open_half(self, port, greeting):
        """Connections that begin and then send nothing more."""
        for _ in range(_HALF_OPEN):
            connection = socket.create_connection(("127.0.0.1", port), program.PATIENCE_SECONDS)
            self.half_open.append(connection)
            connection.sendall(greeting[: self.random.randrange(len(greeting))])

    def pester(self, port):
        """Sends everything to one data port; returns the number of messages that were decoded."""
        self.open_half(port, zmtp.greeting())
        for data in garbage.failed_handshakes(self.random, _HANDSHAKES):
            _throw(port, data).close()
        messages = garbage.refused_messages(self.random, _MESSAGES, self.job)
        for i in range(0, len(messages), 8):
            with zmtp.Peer(port, minor=i // 8 % 2) as peer:
                for parts in messages[i : i + 8]:
                    peer.send_message(parts)
        with zmtp.Peer(port) as peer:
            peer.send(zmtp.lying_part(wire.FRAME_BYTES_MAX + 1))
            self.assertTrue(peer.is_closed_by_the_other_side())
        return len(messages)

    def test_data_ports_of_servers(self):
        servers = cluster.nodes(self.before, "SERVER")
        sent = [sum(self.pester(port) + _HANDSHAKES for port in cluster.ports(server))
                for server in servers]
        before = cluster.malformed(self.before)

        def counted(status):
            return all(now - then >= count for now, then, count
                       in zip(cluster.malformed(status), before, sent))

        status = self.cluster.await_status(counted, f"malformed to grow by {sent}")
        print(f"malformed: {cluster.malformed(status)}, sent: {sent}")
        self.assert_unharmed()

    def test_data_ports_of_workers(self):
        for worker in cluster.nodes(self.before, "WORKER"):
            for port in cluster.ports(worker):
                self.pester(port)
        self.assert_unharmed()

    def test_port_of_the_scheduler(self):
        self.open_half(self.cluster.port, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        for data in garbage.control_garbage(self.random, _CONTROL_CASES, cluster.JOB.encode()):
            # Closing it could cancel a call before the server has read it.
            self.half_open.append(_throw(self.cluster.port, data))
        status = self.cluster.status()
        self.assertEqual(self.before["view"]["tables"], status["view"]["tables"])
        self.assertEqual(2, len(cluster.nodes(status, "SERVER")))
        self.assert_unharmed()


class GarbageTest(HarmlessGarbage, cluster.ProcessTest):
    def make_cluster(self, **options):
        return cluster.Cluster(self, **options)

    def test_calls_that_never_end(self):
        # Each waits for a view that never comes.
        watches = b"".join(
            http2.call(b"WatchView", http2.grpc_message(wire.number(2, 1 << 60)), stream)
            for stream in range(1, 2 * _CALLS, 2))
        for _ in range(4):
            connection = _throw(self.cluster.port, http2.opening())
            self.half_open.append(connection)
            # The server's limits apply once it knows that the client has received them.
            self.assertTrue(connection.recv(9))
            try:
                connection.sendall(http2.frame(http2.SETTINGS, http2.ACK) + watches)
            except ConnectionError:
                pass
        self.assert_unharmed()

    def test_forgeries_in_the_names_of_nodes(self):
        servers, workers = (cluster.nodes(self.before, role) for role in ("SERVER", "WORKER"))
        for node in self.before["view"]["nodes"]:
            self.assertEqual("0", node.get("incarnation", "0"), "strangers are told of it")
        beats = heartbeats.Heartbeats(
            self.cluster, [node["id"] for node in servers + workers])
        sent = []
        for node in servers + workers:
            messages = []
            for port in cluster.ports(node):
                forged = garbage.forged_messages(self.random, _FORGERIES, self.before["view"])
                with zmtp.Peer(port) as peer:
                    # A replay comes over another connection than the original.
                    for parts in forged + forged[:_REPLAYS]:
                        peer.send_message(parts)
                with zmtp.Peer(port) as peer:
                    for parts in forged[:_REPLAYS]:
                        peer.send_message(parts)
                messages += forged + 2 * forged[:_REPLAYS]
            sent.append(len(messages))
        before = cluster.malformed(self.before)
        status = self.cluster.await_status(
            lambda status: all(now - then >= count for now, then, count
                               in zip(cluster.malformed(status), before, sent)),
            f"malformed to grow by {sent}")
        beats.stop()
        print(f"malformed: {cluster.malformed(status)}, sent: {sent}, "
              f"longest silence: {beats.longest_ms}")
        for node, silent_ms in beats.longest_ms.items():
            self.assertLess(silent_ms, 2 * _HEARTBEAT_MS, node)
        for part in ("tables", "groups"):
            self.assertEqual(self.before["view"][part], status["view"][part])
        self.assert_unharmed()

    def ask(self, body_field, body, frames=()):
        """Sends a request to the loop that holds the counter's table; the reply's parts."""
        replica = self.before["view"]["tables"][0]["shards"][0]["chain"][0]
        server = next(node for node in self.before["view"]["nodes"]
                      if node["id"] == replica["node"])
        with zmtp.Peer(cluster.ports(server)[replica["loop"] - 1]) as peer:
            peer.send_message([wire.head(wire.envelope(
                body_field, body, frames, job=self.job,
                epoch=int(self.before["view"]["epoch"]))), *frames])
            return peer.receive_message()

    def test_requests_that_make_no_sense_are_answered(self):
        table = self.before["view"]["tables"][0]
        known = {"table": int(table["id"]), "generation": int(table["shards"][0]["generation"])}
        ones = struct.pack("<4f", 1, 1, 1, 1)
        not_a_number = struct.pack("<4f", 1, 1, float("nan"), 1)
        cases = [
            (wire.PULL_REQUEST, wire.pull(table=4711), [], rb"no such table"),
            (wire.PUSH_REQUEST, wire.push(table=4711), [ones], rb"no such table"),
            (wire.PULL_REQUEST, wire.pull(**known, shard=7), [], rb"has 1 shards"),
            (wire.PULL_REQUEST, wire.pull(known["table"], generation=99), [], rb"generation"),
            (wire.PUSH_REQUEST, wire.push(**known), [ones[:8]], rb"bytes|elements"),
            # Queries whether the push has been received.
            (wire.PUSH_REQUEST, wire.push(**known), [], rb"producer|not received"),
            (wire.PUSH_REQUEST, wire.push(**known), [ones[:7]], rb"bytes|elements"),
            (wire.PUSH_REQUEST, wire.push(**known, samples=0), [ones], rb"samples"),
            (wire.PUSH_REQUEST, wire.push(**known, sequence=0), [ones], rb"sequence"),
            (wire.PUSH_REQUEST, wire.push(**known, kind=7), [ones], rb"producer|kind"),
            (wire.PUSH_REQUEST, wire.push(**known), [not_a_number], rb"element 2|NaN|producer"),
            (wire.PUSH_REQUEST, wire.push(**known, producer=99), [ones], rb"node 99|producer"),
        ]
        for field, body, frames, expected in cases:
            with self.subTest(body=body, expected=expected):
                self.assertRegex(b"".join(self.ask(field, body, frames)), expected)
        self.assert_unharmed()

    def test_a_peer_that_asks_and_never_reads(self):
        request = zmtp.message([wire.head(wire.envelope(
            wire.PULL_REQUEST, wire.pull(table=4711), job=self.job, epoch=1))])
        server = cluster.nodes(self.before, "SERVER")[0]
        with zmtp.Peer(cluster.ports(server)[0]) as peer:
            for _ in range(40):
                peer.send(request * 1000)
            self.assert_unharmed()


class SecuredGarbageTest(HarmlessGarbage, cluster.ProcessTest):
    """The same with certificates; all of it comes from strangers then."""

    def make_cluster(self, **options):
        return cluster.Cluster(self, tls=cluster.certificates(self), **options)

    def test_requests_without_a_seal_are_refused(self):
        table = self.before["view"]["tables"][0]
        push = wire.push(int(table["id"]), generation=int(table["shards"][0]["generation"]))
        ones = struct.pack("<4f", 1, 1, 1, 1)
        requests = 50
        for server in cluster.nodes(self.before, "SERVER"):
            for port in cluster.ports(server):
                with zmtp.Peer(port) as peer:
                    for _ in range(requests):
                        peer.send_message([wire.head(wire.envelope(
                            wire.PUSH_REQUEST, push, [ones], job=self.job,
                            epoch=int(self.before["view"]["epoch"]))), ones])
        self.cluster.await_status(
            lambda status: all(now - then >= 2 * requests for now, then in zip(
                cluster.malformed(status), cluster.malformed(self.before))),
            "malformed to grow")
        self.assert_unharmed()


if __name__ == "__main__":
    report.main()
