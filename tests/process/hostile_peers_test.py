# SPDX-License-Identifier: Apache-2.0
"""Hostile peers of a secured job that trains meanwhile: nothing but refusals, and no harm.

A scenario is a method that begins with the name of a place: `scheduler_`, `data_port_`, `network_`
or `node_`. docs/TESTING.md lists them. The network is that of a forwarder between clients and
server 0 (middle.py), and the dishonest node of the job is written in Python (sealed_wire.py).
"""

import base64
import collections
import contextlib
import inspect
import json
import os
import random
import re
import resource
import socket
import ssl
import struct
import time
import urllib.request

from tests import report
from tests.process import (cluster, control_caller, garbage, heartbeats, http2, ledger, middle,
                           openssl, program, sealed_wire, wire, zmtp)

_SERVERS = 2
_LOOPS = 2
_WORKERS = 2
# Long enough for a busy machine: the bar is twice this period.
_HEARTBEAT_MS = 2000
_FLOOD_CONNECTIONS = 300
_FORGERIES_OF_EACH = 8
# Fewer than that; the usual limit is 1,024, and as easily exceeded.
_FILES_OF_A_SHELL = 256
_CLIENT, _SERVER = 4, 2  # proto.Role
_OF_A_GROUP = 1  # PushId.ProducerKind
_HOUR = 3600
_SEED = 20261126


def metrics_of(server):
    """The address at which it shows its metrics."""
    return server.await_line(r'serves_metrics.*?"address":"([^"]+)"').group(1)


class _TappedCluster(cluster.Cluster):
    """The way to server 0 leads through `taps`, one per data loop."""

    def __init__(self, test, **options):
        self.taps = [middle.Middle(lambda loop=loop: self.behind()[loop])
                     for loop in range(_LOOPS)]
        super().__init__(test, **options)

    def server_arguments(self, rank):
        places = ",".join(f"127.0.0.1:{tap.port}" for tap in self.taps)
        return super().server_arguments(rank) + (["--advertise-data", places] if rank == 0 else [])

    def behind(self):
        """The real ports of server 0, by data loop."""
        first = int(self.servers[0].await_line(
            r'server_joined.*"endpoint":"tcp://[\d.]+:(\d+)"').group(1))
        metrics = int(metrics_of(self.servers[0]).rsplit(":", 1)[1])
        [other] = middle.listening_ports(self.servers[0].pid) - {first, metrics}
        return [first, other]


class HostilePeersTest(cluster.ProcessTest):
    def setUp(self):
        super().setUp()
        self.random = random.Random(_SEED)
        self.tls = cluster.certificates(self)
        self.authority = os.path.join(self.folder, "ca")
        _, files_max = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (_FILES_OF_A_SHELL, files_max))
        self.running = _TappedCluster(
            self, servers=_SERVERS, workers=_WORKERS, loops=_LOOPS, tls=self.tls,
            scheduler_options=["--heartbeat", f"{_HEARTBEAT_MS}ms", "--silence-min", "10s"],
            server_options=["--transport", "tcp", "--metrics", "localhost:0"])
        resource.setrlimit(resource.RLIMIT_NOFILE, (files_max, files_max))
        for tap in self.running.taps:
            self.addCleanup(tap.close)
        self.held, self.slow = [], []
        self.addCleanup(lambda: [connection.close() for connection in self.held])
        self.producers = [ledger.Producer(self, self.running, "async", slot,
                                          options=["--pause", "10ms"]) for slot in range(2)]
        self.workers = [self.start(f"ledger_worker {rank}", [ledger.WORKER],
                                   {**self.running.environment(rank), "COVEY_TRANSPORT": "tcp"})
                        for rank in range(_WORKERS)]
        self.progress("at the beginning")
        self.view = self.running.status()["view"]
        self.job = int(self.view["job"])
        self.servers = cluster.nodes({"view": self.view}, "SERVER")
        self.real_ports = [self.running.behind(), cluster.ports(self.servers[1])]
        self.refused_messages = [0] * _SERVERS  # that a server must have counted
        self.links = {}

    # What the scenarios use.

    def progress(self, what):
        for producer in self.producers:
            producer.await_durable(16, f"durable pushes {what}")
        steps = [worker.count('"event":"step"') for worker in self.workers]
        program.await_true(
            lambda: all(worker.count('"event":"step"') > before + 2 or not worker.running()
                        for worker, before in zip(self.workers, steps)), f"steps {what}")
        for worker in self.workers:
            self.assertTrue(worker.running(), worker)

    def role(self, name):
        return os.path.join(self.tls, name)

    def certificates(self, *words):
        run = self.run_to_end("covey certificates", [cluster.COVEY, "certificates", *words])
        self.assertEqual(0, run.code, run)
        return run

    def issue(self, name, *words, authority=None, job=cluster.JOB):
        folder = os.path.join(self.folder, name)
        self.certificates("issue", authority or self.authority, *words, "--out", folder,
                          *(["--job", job] if job else []))
        return folder

    def signed_again(self, name, **changes):
        """The viewer's certificate with a change that the authority would not make."""
        return openssl.sign_again(self.authority, self.role("viewer"),
                                  os.path.join(self.folder, name), **changes)

    def answer(self, tls):
        """The beginning of the scheduler's answer to what a viewer may call."""
        call = http2.opening() + http2.call(b"GetStatus", http2.grpc_message(b""))
        return control_caller.answer(self.running.port, tls, call)

    def assert_not_let_in(self, tls):
        self.assertEqual(b"", self.answer(tls))

    def assert_denied(self, folder, method, body, why, audited=True, code=7):
        reply = control_caller.call(self.running.port, folder, method, body)
        self.assertEqual(code, reply.code, reply.message)
        self.assertRegex(reply.message, why)
        if audited:
            self.running.scheduler.await_line(
                rf'"event":"audit".*"call":"{method.decode()}".*{why}')

    def metrics(self, server):
        """The server's page of metrics."""
        with urllib.request.urlopen(
                f"http://{metrics_of(self.running.servers[server])}/metrics", timeout=60) as page:
            return page.read().decode()

    def refusals(self, server):
        """How many messages the server has refused, by reason."""
        found = re.findall(r'^covey_messages_refused_total\{.*?reason="(\w+)".*?\} (\S+)$',
                           self.metrics(server), re.MULTILINE)
        counts = collections.Counter()
        for reason, count in found:
            counts[reason] += int(float(count))
        return counts

    def assert_refused(self, server, loop, parts, why, *reasons):
        """Sends it until the server's log says why; it logs one refusal per second.

        reasons: one of them is that under which all of it is counted.
        """
        said = self.running.servers[server].count(f"messages_refused.*{why}")
        before, sent = self.refusals(server), 0
        with zmtp.Peer(self.real_ports[server][loop]) as peer:
            def refused():
                nonlocal sent
                peer.send_message(parts)
                sent += 1
                self.refused_messages[server] += 1
                time.sleep(0.1)
                return self.running.servers[server].count(f"messages_refused.*{why}") > said
            program.await_true(refused, self.running.servers[server])

        def counted():
            now = self.refusals(server)
            return sum(now[reason] - before[reason] for reason in reasons) >= sent

        program.await_true(counted, f"{sent} messages refused as {reasons}, after {before}")

    def requests_malformed(self, server):
        """How many requests the server's loops have refused that no correct peer sends."""
        return sum(int(float(count)) for count in re.findall(
            r"^covey_requests_malformed_total(?:\{.*?\})? (\S+)$", self.metrics(server), re.MULTILINE))

    def recorded(self, frames=1):
        """A message that a client or worker has sent to the first loop of server 0."""
        def found():
            return next((parts for parts in reversed(self.running.taps[0].messages)
                         if len(parts) == 1 + frames), None)
        return list(program.await_true(found, "a recorded message"))

    def speaking_for(self, node):
        """The header of a call that says it is this node's."""
        return wire.header(job=self.job, node=int(node["id"]), incarnation=int(node["incarnation"]))

    # At the scheduler's port.

    def scheduler_plain_grpc(self):
        self.assert_not_let_in(None)

    def scheduler_no_certificate(self):
        self.assert_not_let_in(control_caller.context())

    def scheduler_tls_1_2(self):
        self.assert_not_let_in(control_caller.context(self.role("viewer"), ssl.TLSVersion.TLSv1_2))

    def scheduler_own_authority(self):
        other = os.path.join(self.folder, "other-ca")
        self.certificates("init", other)
        stranger = self.issue("stranger", "--role", "admin", "--every-job", authority=other, job=None)
        self.assert_not_let_in(control_caller.context(stranger))

    def scheduler_expired(self):
        self.assert_not_let_in(control_caller.context(
            self.signed_again("expired", ends=time.time() - _HOUR)))

    def scheduler_not_valid_yet(self):
        self.assert_not_let_in(control_caller.context(
            self.signed_again("early", begins=time.time() + _HOUR)))

    def scheduler_other_trust_domain(self):
        self.assert_not_let_in(control_caller.context(
            self.signed_again("domain", replaced=(b"spiffe://covey/", b"spiffe://cuvey/"))))

    def scheduler_name_of_no_identity(self):
        self.assert_not_let_in(control_caller.context(
            self.signed_again("nameless", replaced=(b"role/viewer", b"role/keeper"))))

    def scheduler_revoked(self):
        folder = self.issue("lost", "--role", "client")
        reply = control_caller.call(self.running.port, folder, b"GetStatus", b"")
        self.assertEqual(0, reply.code, reply.message)
        shown = json.loads("".join(self.certificates("show", folder, "-o", "json").lines("stdout")))
        self.certificates("revoke", self.authority, shown["serial"], self.role("scheduler"))
        program.await_true(lambda: control_caller.call(
            self.running.port, folder, b"GetStatus", b"").code != 0, "the refusal of a revoked one")
        self.assert_denied(folder, b"GetStatus", b"", "was revoked", audited=False, code=16)
        self.running.scheduler.await_line('"event":"caller_refused".*was revoked')

    def scheduler_other_job(self):
        self.assert_denied(self.issue("other-job", "--role", "admin", job="other"), b"Scale", b"",
                           "this is job process-test")

    def scheduler_viewer_drains(self):
        self.assert_denied(self.role("viewer"), b"Drain", wire.nested(2, b"server-1"),
                           "allowed are servers for their own node")

    def scheduler_worker_drops_a_table(self):
        [worker, *_] = cluster.nodes({"view": self.view}, "WORKER")
        self.assert_denied(self.role("worker"), b"DropTable", self.speaking_for(worker)
                           + wire.nested(2, b"ledger/async"), "allowed are clients")

    def registration(self, role, key, rank=-1, incarnation=None):
        incarnation = incarnation or self.random.getrandbits(63) | 1
        return (wire.nested(1, wire.fixed64(3, incarnation)) + wire.nested(2, cluster.JOB.encode())
                + wire.number(3, role) + wire.number(4, rank % (1 << 64)) + wire.nested(6, b"")
                + wire.nested(6, b"tcp://127.0.0.1:1") + wire.nested(9, key))

    def scheduler_worker_registers_as_server(self):
        self.assert_denied(self.role("worker"), b"Register",
                           self.registration(_SERVER, bytes(32)), "only for a node of the role")

    def scheduler_other_rank(self):
        folder = self.issue("server-7", "--role", "server", "--rank", "7")
        self.assert_denied(folder, b"Register", self.registration(_SERVER, bytes(32), rank=6),
                           "server 7 of job process-test may not|only for a node of the role")

    def scheduler_call_for_anothers_node(self):
        self.assert_denied(self.role("client"), b"Leave", self.speaking_for(self.servers[0]),
                           "only for a node of the role")

    def scheduler_takes_anothers_registration(self):
        self.assert_denied(self.role("client"), b"Register", self.registration(
            _CLIENT, bytes(32), incarnation=int(self.servers[0]["incarnation"])),
                           "only for a node of the role")

    def scheduler_every_call_in_anothers_name(self):
        """A client speaks for a server, whatever it calls."""
        for method in wire.methods():
            with self.subTest(method):
                self.assert_denied(self.role("client"), method, self.speaking_for(self.servers[0]),
                                   "may not")

    def scheduler_method_of_nobody(self):
        reply = control_caller.call(self.running.port, self.role("admin"), b"Abdicate", b"")
        self.assertEqual(12, reply.code, reply.message)

    def scheduler_http2_garbage_of_a_viewer(self):
        tls = control_caller.context(self.role("viewer"))
        for data in garbage.control_garbage(self.random, 30, cluster.JOB.encode()):
            connection = tls.wrap_socket(control_caller.connect(self.running.port))
            self.held.append(connection)
            try:
                connection.sendall(data)
            except (ConnectionError, ssl.SSLError):
                pass

    def scheduler_body_of_2_to_32_bytes(self):
        connection = control_caller.context(self.role("viewer")).wrap_socket(
            control_caller.connect(self.running.port))
        self.held.append(connection)
        connection.sendall(http2.opening() + http2.call(
            b"GetStatus", http2.grpc_message(b"", claimed=(1 << 32) - 1)))

    def client_hello(self):
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        try:
            control_caller.context(self.role("viewer")).wrap_bio(incoming, outgoing).do_handshake()
        except ssl.SSLWantReadError:
            pass
        return outgoing.read()

    def scheduler_flood_of_slow_handshakes(self):
        hello = self.client_hello()
        for _ in range(_FLOOD_CONNECTIONS):
            connection = control_caller.connect(self.running.port)
            connection.sendall(hello[: self.random.randrange(len(hello))])
            self.slow.append(connection)
            self.held.append(connection)
        self.assertIsNotNone(self.running.status())

    def scheduler_damaged_handshakes(self):
        hello = self.client_hello()
        for _ in range(20):
            at = self.random.randrange(len(hello))
            with control_caller.connect(self.running.port) as connection:
                connection.sendall(hello[:at] + bytes([hello[at] ^ 0xFF]) + hello[at + 1:])

    # At a data port, by somebody who belongs to no job.

    def data_port_plain_message(self):
        push = wire.envelope(wire.PUSH_REQUEST, wire.push(table=1), job=self.job,
                             node=int(self.servers[0]["id"]))
        self.assert_refused(0, 0, [wire.head(push)], "not sealed", "no_key")

    def data_port_unknown_version(self):
        [head, *frames] = self.recorded()
        self.assert_refused(0, 0, [head[:4] + b"\x09" + head[5:], *frames], "wire version 9",
                            "malformed")

    def data_port_unknown_flags(self):
        [head, *frames] = self.recorded()
        self.assert_refused(0, 0, [head[:5] + b"\x03" + head[6:], *frames], "flags that this",
                            "malformed")

    def data_port_envelope_of_2_to_32_bytes(self):
        [head, *frames] = self.recorded()
        self.assert_refused(0, 0, [head[:8] + b"\xff" * 4 + head[12:], *frames],
                            "envelope of 4294967295 bytes", "malformed")

    def data_port_2_to_32_frames(self):
        [head, *frames] = self.recorded()
        self.assert_refused(0, 0, [head[:12] + b"\xff" * 4 + head[16:], *frames],
                            "4294967295 frames", "malformed")

    def data_port_part_of_2_to_63_bytes(self):
        for claimed in (1 << 63, (1 << 64) - 1, wire.FRAME_BYTES_MAX + (1 << 20)):
            with zmtp.Peer(self.real_ports[0][0]) as peer:
                peer.send(zmtp.lying_part(claimed))
                self.assertTrue(peer.is_closed_by_the_other_side())

    def data_port_truncated_message(self):
        [head, *frames] = self.recorded()
        self.assert_refused(0, 0, [head[:40], *frames], "claims|shorter|bytes", "malformed")
        self.assert_refused(0, 0, [head[:-1], *frames], "sealed head frame claims",
                            "malformed")

    def data_port_random_seal(self):
        [head, *frames] = self.recorded()
        self.assert_refused(0, 0, [sealed_wire.with_fields(head, number=1 << 60)[:64]
                                   + self.random.randbytes(len(head) - 64), *frames], "not genuine",
                            "not_genuine")

    def data_port_unknown_sender(self):
        # It could be a node that has just registered: held for 2 s, then dropped.
        [head, *frames] = self.recorded()
        with zmtp.Peer(self.real_ports[0][0]) as peer:
            for _ in range(200):
                peer.send_message([sealed_wire.with_fields(head, sender=1 << 40), *frames])

    def data_port_flood_of_connections(self):
        greeting = zmtp.greeting()
        for port in (*self.real_ports[0], *self.real_ports[1]):
            for _ in range(_FLOOD_CONNECTIONS // 4):
                connection = socket.create_connection(("127.0.0.1", port), 60)
                connection.sendall(greeting[: self.random.randrange(len(greeting))])
                self.held.append(connection)

    def data_port_failed_handshakes(self):
        for data in garbage.failed_handshakes(self.random, 24):
            with socket.create_connection(("127.0.0.1", self.real_ports[1][0]), 60) as connection:
                try:
                    connection.sendall(data)
                except ConnectionError:
                    pass

    # With the messages of honest nodes, by whoever has the network.

    def network_replay(self):
        self.assert_refused(0, 0, self.recorded(), "has come before, or is too late", "repeated")

    def network_redirect_to_another_loop(self):
        self.assert_refused(0, 1, self.recorded(), "message of loop", "misdirected")

    def network_redirect_to_another_process(self):
        parts = self.recorded()
        with zmtp.Peer(self.real_ports[1][0]) as peer:
            for _ in range(10):
                peer.send_message(parts)
        # Dropped, since it may be for a process that was here before. Under another name:
        [head, *frames] = parts
        self.assert_refused(1, 0, [sealed_wire.with_fields(
            head, receiver=int(self.servers[1]["id"])), *frames], "not genuine|come before",
                            "not_genuine", "repeated")

    def network_another_sender(self):
        [head, *frames] = self.recorded()
        self.assert_refused(0, 0, [sealed_wire.with_fields(
            head, sender=int(self.servers[1]["id"]), sender_loop=1), *frames],
                            "not genuine|come before", "not_genuine", "repeated")

    def network_altered_number(self):
        [head, *frames] = self.recorded()
        number = sealed_wire.head_fields(head)[4]
        self.assert_refused(0, 0, [sealed_wire.with_fields(head, number=number + (1 << 30)),
                                   *frames], "not genuine", "not_genuine")

    def altered(self, data, at):
        return data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]

    def in_time(self, change):
        """A recorded message whose number nobody has used, which is possible for a held one."""
        [head, *frames] = self.recorded()
        number = sealed_wire.head_fields(head)[4]
        return change([sealed_wire.with_fields(head, number=number + (1 << 20)), *frames])

    def network_altered_tag(self):
        self.assert_refused(0, 0, self.in_time(
            lambda parts: [self.altered(parts[0], 64), *parts[1:]]), "not genuine", "not_genuine")

    def network_altered_envelope(self):
        self.assert_refused(0, 0, self.in_time(
            lambda parts: [self.altered(parts[0], len(parts[0]) - 1), *parts[1:]]), "not genuine",
                            "not_genuine")

    def network_frames_of_another_number(self):
        self.assert_refused(0, 0, self.in_time(lambda parts: [*parts, b""]),
                            "claims 1 frames and has 2", "malformed")
        self.assert_refused(0, 0, self.in_time(lambda parts: parts[:1]),
                            "claims 1 frames and has 0", "malformed")

    # By a node of the job: a client that has registered, and seals its messages.

    def node(self, server=1):
        """(its link to a server's first data loop, its identity in envelopes), once registered."""
        if not self.links:
            self.key = openssl.NodeKey()
            self.incarnation = self.random.getrandbits(63) | 1
            reply = control_caller.call(self.running.port, self.role("client"), b"Register",
                                        self.registration(_CLIENT, self.key.public,
                                                          incarnation=self.incarnation))
            self.assertEqual(0, reply.code, reply.message)
            self.own = self.node_in(reply.body)
            self.number = 0
        if server not in self.links:
            self.links[server] = sealed_wire.Link(
                self.key, self.job, (self.own, 0, self.key.public), self.loop_of(server))
        self.heartbeat()
        return self.links[server]

    def loop_of(self, server):
        return (int(self.servers[server]["id"]), 1, base64.b64decode(self.servers[server]["data_key"]))

    @staticmethod
    def node_in(body):
        """RegisterReply.node."""
        value, shift, at = 0, 0, 1
        while True:
            value |= (body[at] & 0x7F) << shift
            if body[at] < 0x80:
                return value
            at, shift = at + 1, shift + 7

    def heartbeat(self):
        reply = control_caller.call(
            self.running.port, self.role("client"), b"Heartbeat",
            wire.header(job=self.job, node=self.own, incarnation=self.incarnation))
        self.assertEqual(0, reply.code, reply.message)

    def envelope(self, field, body, frames=(), sizes=None, to=None, **changed):
        identity = {"job": self.job, "node": self.own, "incarnation": self.incarnation,
                    "epoch": int(self.view["epoch"]), **changed}
        return sealed_wire.envelope(field, body, frames, sizes, to=to or self.loop_of(1)[:2],
                                    **identity)

    def next_number(self):
        self.number += 1
        return self.number

    def ask(self, field, body, frames=(), **changed):
        """The answer of server 1 to a sealed request, opened."""
        link = self.node()
        with zmtp.Peer(self.real_ports[1][0]) as peer:
            peer.send_message(link.seal(self.next_number(), self.envelope(
                field, body, frames, **changed), frames))
            return link.open(peer.receive_message()[0])

    def assert_refused_of_node(self, why, **changed):
        """The same envelope is answered when nothing is changed, see `node_is_heard`."""
        link = self.node()
        self.assert_refused(1, 0, link.seal(self.next_number(), self.envelope(
            wire.PULL_REQUEST, wire.pull(table=4711), **changed)), why, "misdirected")

    def node_is_heard(self):
        """The control of the others: what is sealed as it should be is answered."""
        self.assertIn(b"no such table", self.ask(wire.PULL_REQUEST, wire.pull(table=4711)))

    def node_seals_as_another(self):
        link = self.node()
        [head] = link.seal(self.next_number(), self.envelope(
            wire.PULL_REQUEST, wire.pull(table=4711)))
        self.assert_refused(1, 0, [sealed_wire.with_fields(
            head, sender=int(self.servers[0]["id"]), sender_loop=7)], "not genuine", "not_genuine")

    def node_claims_to_be_another_inside(self):
        self.assert_refused_of_node("says it is from", node=int(self.servers[0]["id"]))

    def node_claims_another_incarnation(self):
        self.assert_refused_of_node("says it is from", incarnation=self.incarnation + 2)

    def node_claims_another_receiver_inside(self):
        self.assert_refused_of_node("says it is from", to=(int(self.servers[0]["id"]), 1))

    def node_repeats_itself(self):
        link = self.node()
        parts = link.seal(self.next_number(), self.envelope(
            wire.PULL_REQUEST, wire.pull(table=4711)))
        with zmtp.Peer(self.real_ports[1][0]) as peer:
            peer.send_message(parts)
            peer.receive_message()
        self.assert_refused(1, 0, parts, "has come before", "repeated")

    def node_sends_what_does_not_travel_between_data_ports(self):
        link = self.node()
        for field in (wire.WATCH_VIEW_REPLY, wire.LEASE_NOTICE):
            self.assert_refused(1, 0, link.seal(self.next_number(), self.envelope(
                field, wire.nested(1, wire.number(3, 1 << 62)))), "does not travel between",
                                "misdirected")
        before = self.refusals(1)["misdirected"]
        with zmtp.Peer(self.real_ports[1][0]) as peer:
            for field in wire.OTHER_BODIES:
                peer.send_message(link.seal(self.next_number(), self.envelope(field, b"")))
        self.refused_messages[1] += len(wire.OTHER_BODIES)
        program.await_true(
            lambda: self.refusals(1)["misdirected"] - before >= len(wire.OTHER_BODIES),
            f"refusals of {len(wire.OTHER_BODIES)} bodies as misdirected, after {before}")

    def node_forges_every_body_of_the_data_plane(self):
        """Sealed as it should be, in its own name or, inside the body, in that of server 0."""
        link = self.node()
        before = self.requests_malformed(1)
        [worker, *_] = cluster.nodes({"view": self.view}, "WORKER")
        to_worker = (int(worker["id"]), 0)
        links = [(link, self.real_ports[1][0], self.loop_of(1)[:2]),
                 (sealed_wire.Link(self.key, self.job, (self.own, 0, self.key.public),
                                   (*to_worker, base64.b64decode(worker["data_key"]))),
                  cluster.ports(worker)[0], to_worker)]
        # A connection that is closed before its bytes are read may lose them.
        with contextlib.ExitStack() as open_until_counted:
            for link, port, to in links:
                peer = open_until_counted.enter_context(zmtp.Peer(port))
                for maker in garbage.forged_bodies(self.random, self.view):
                    for _ in range(_FORGERIES_OF_EACH):
                        field, body, frames = maker(int(self.servers[0]["id"]))
                        peer.send_message(link.seal(self.next_number(), self.envelope(
                            field, body, frames, to=to), frames))
            for_workers = _FORGERIES_OF_EACH * len(wire.WORKER_BODIES)
            self.refused_messages[1] += for_workers
            program.await_true(lambda: self.requests_malformed(1) - before >= for_workers,
                               f"{for_workers} malformed requests, after {before}")
        self.progress("after forgeries of every body")

    def node_lies_about_frames(self):
        link = self.node()
        self.assert_refused(1, 0, link.seal(self.next_number(), self.envelope(
            wire.PUSH_REQUEST, wire.push(table=1), sizes=[1 << 63]), [bytes(16)]),
                            "envelope claims 9223372036854775808 bytes", "malformed")
        self.assert_refused(1, 0, link.seal(self.next_number(), self.envelope(
            wire.PUSH_REQUEST, wire.push(table=1)), [bytes(8)] * (wire.FRAMES_MAX + 1)),
                            "frames", "malformed")

    def shard_at_server_1(self, name):
        """(table id, shard) of this table, in the server's first data loop."""
        [table] = [table for table in self.view["tables"] if table["spec"]["name"] == name]
        return int(table["id"]), next(
            shard for shard in table["shards"]
            if (shard["chain"][0]["node"], shard["chain"][0].get("loop")) == (self.servers[1]["id"], 1))

    def node_pushes_for_another(self):
        table, shard = self.shard_at_server_1("ledger/async")
        frame = bytes(4 * ledger.SLOTS * ledger.ELEMENTS)
        answer = self.ask(wire.PUSH_REQUEST, wire.push(
            table, shard=int(shard.get("index", 0)), generation=int(shard["generation"]),
            producer=int(self.servers[0]["id"])), [frame])
        self.assertIn(b"does not fit its sender", answer)

    def node_pushes_for_a_group(self):
        """The group's next steps, so that its own pushes would count as repetitions."""
        [group] = self.view["groups"]
        table, shard = self.shard_at_server_1("ledger/group")
        step = max(int(event["number"]) for event in ledger.events(self.workers[0], "step")) + 200
        frame = bytes(4 * ledger.SLOTS * ledger.ELEMENTS)
        identity = (wire.number(1, table) + wire.number(2, int(shard.get("index", 0)))
                    + wire.number(3, int(group["id"])) + wire.number(4, _OF_A_GROUP)
                    + wire.fixed64(5, int(group["generation"])) + wire.number(6, step))
        answer = self.ask(wire.PUSH_REQUEST, wire.nested(1, identity)
                          + wire.number(2, int(shard["generation"])) + wire.number(3, 1)
                          + wire.number(5, step) + wire.number(7, int(group["id"]))
                          + wire.number(8, int(group["generation"])) + wire.number(9, 1000), [frame])
        self.assertIn(b"is no member of group", answer)

    def node_registers_with_anothers_key(self):
        stolen = base64.b64decode(self.servers[0]["data_key"])
        self.assert_key_opens_nothing(stolen)

    def node_registers_with_a_weak_key(self):
        self.assert_key_opens_nothing(bytes(32))

    def assert_key_opens_nothing(self, public):
        reply = control_caller.call(self.running.port, self.role("client"), b"Register",
                                    self.registration(_CLIENT, public))
        self.assertEqual(0, reply.code, reply.message)
        own = self.node_in(reply.body)
        link = sealed_wire.Link(openssl.NodeKey(), self.job, (own, 0, public), self.loop_of(1))
        self.assert_refused(1, 0, link.seal(1, self.envelope(
            wire.PULL_REQUEST, wire.pull(table=4711), node=own)), "not genuine|public key|secret", "not_genuine", "no_key")

    def node_is_dead(self):
        """Comes last: the node has sent no more heartbeats."""
        link = self.links[1]
        name = next(node["name"] for node in self.running.status()["view"]["nodes"]
                    if int(node["id"]) == self.own)
        self.running.await_status(lambda status: any(
            node["name"] == name and node["state"] == "DEAD" for node in status["view"]["nodes"]),
                                  f"the death of {name}")
        self.assert_refused(1, 0, link.seal(self.next_number(), self.envelope(
            wire.PULL_REQUEST, wire.pull(table=4711))), "DEAD|dead", "no_key")

    # The test.

    def scenarios(self):
        """In the order of this file."""
        found = [(name, method) for name, method in inspect.getmembers(self, inspect.ismethod)
                 if name.startswith(("scheduler_", "data_port_", "network_", "node_"))
                 and name != "node_in"]
        return sorted(found, key=lambda each: each[1].__func__.__code__.co_firstlineno)

    def test_nothing_but_refusals(self):
        honest = {node["id"]: node["name"] for node in self.view["nodes"]
                  if node["state"] == "ALIVE"}
        self.assertEqual(_SERVERS + _WORKERS + len(self.producers), len(honest))
        before = cluster.malformed(self.running.status())
        watch = heartbeats.Heartbeats(self.running, honest)
        self.addCleanup(watch.stop)
        # The control of those who are not let in.
        self.assertNotEqual(b"", self.answer(control_caller.context(self.role("viewer"))))
        scenarios = self.scenarios()
        for name, scenario in scenarios:
            with self.subTest(name):
                started = time.monotonic()
                scenario()
                print(f"{name}: {time.monotonic() - started:.1f} s", flush=True)
        self.progress("after all scenarios")
        watch.stop()
        print(f"{len(scenarios)} scenarios; longest silence "
              f"{ {honest[node]: ms for node, ms in watch.longest_ms.items()} } ms in "
              f"{watch.polls} polls", flush=True)
        self.assertEqual(0, watch.failures)
        for connection in self.slow:  # the scheduler has waited for 10 s
            self.assertEqual(b"", control_caller.read_all(connection))
        self.assertLessEqual(max(watch.longest_ms.values()), 2 * _HEARTBEAT_MS)
        status = self.running.await_status(
            lambda status: all(now - then >= count for now, then, count in zip(
                cluster.malformed(status), before, self.refused_messages)),
            f"malformed to grow by {self.refused_messages}")
        # Groups and tables are as before, and all honest nodes are alive.
        self.assertEqual(self.view["groups"], status["view"]["groups"])
        self.assertEqual(self.view["tables"], status["view"]["tables"])
        alive = {node["id"] for node in status["view"]["nodes"] if node["state"] == "ALIVE"}
        self.assertLessEqual(set(honest), alive)
        ledger.stop(self, self.running, self.producers)
        account = ledger.audit(self, self.running, self.producers)
        print(account, flush=True)
        self.assertEqual(([], 0), (account.deviations, account.uncertain))
        self.assertGreater(account.certain, 0)


if __name__ == "__main__":
    report.main()
