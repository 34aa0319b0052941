# SPDX-License-Identifier: Apache-2.0
"""Messages of hostile or broken peers, drawn from a seed."""

import struct

from tests.process import http2, wire, zmtp


def failed_handshakes(random, count):
    """First bytes of connections to a data port, none of which completes a handshake."""
    greeting, ready = zmtp.greeting(), zmtp.ready()
    makers = [
        lambda: bytes([random.randrange(255)]) + random.randbytes(random.randrange(4096)),
        lambda: greeting[: random.randrange(1, len(greeting))],
        lambda: greeting[:10] + random.randbytes(54),
        lambda: zmtp.greeting(mechanism=random.choice([b"PLAIN", b"CURVE", b"nonsense", b""])),
        lambda: greeting + ready[: random.randrange(len(ready))],
        lambda: greeting + zmtp.lying_part(random.choice([1 << 63, 1 << 40, (1 << 64) - 1])),
        lambda: greeting + zmtp.part(b"\x05READY" + b"\xff" * 40, command=True),
        lambda: greeting + zmtp.part(b"\xffREADY", command=True),
        lambda: greeting + zmtp.ready(socket_type=b"PUB"),
        lambda: greeting + zmtp.message([b"", b"too early"]),
        lambda: http2.opening(),
        lambda: b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ]
    return [makers[i % len(makers)]() for i in range(count)]


def refused_messages(random, count, job):
    """Messages, each a list of parts, that an honest peer never sends to a data port.

    They arrive over a proper connection. `job`: the fingerprint of the job.
    """
    makers = [
        lambda: [random.randbytes(random.randrange(300)) for _ in range(random.randrange(1, 7))],
        lambda: [b""],
        lambda: [b""] * 100,
        lambda: [_head(job)[: random.randrange(16)]],
        lambda: [_flipped(random, _head(job))],
        lambda: [wire.head(_envelope(job), checksum=random.randrange(1 << 32))],
        lambda: [wire.head(_envelope(job), claimed=random.choice([0, 1, 1 << 20, (1 << 32) - 1]))],
        lambda: [wire.head(_envelope(job)[:-1], checksum=wire.crc32c(_envelope(job)))],
        lambda: [wire.head(_envelope(job), version=random.randrange(2, 256))],
        lambda: [wire.head(_envelope(job), flags=1 << random.randrange(8))],
        lambda: [wire.head(_envelope(job), magic=b"YEVC")],
        lambda: [wire.head(_truncated(random, _envelope(job)))],
        lambda: [wire.head(bytes(wire.ENVELOPE_BYTES_MAX + 1))],
        # The envelope lies about its frames.
        lambda: [wire.head(_envelope(job, sizes=[random.choice([1, 1 << 20, 1 << 63])]))],
        lambda: [wire.head(_envelope(job, sizes=[16])), random.randbytes(random.randrange(16))],
        lambda: [wire.head(_envelope(job, sizes=[4, 4])), bytes(4)],
        lambda: [wire.head(_envelope(job, sizes=[])), bytes(1 << 20)],
        lambda: _with_frames(job, random.randrange(wire.FRAMES_MAX + 1, 40)),
        # Honest in form, but for another recipient.
        lambda: [_head(job ^ 2)],
        lambda: [wire.head(wire.envelope(wire.WATCH_VIEW_REPLY, _view(1), job=job))],
        lambda: [wire.head(wire.envelope(wire.CREATE_TABLE_REPLY, _view(2), job=job))],
        lambda: [wire.head(wire.envelope(wire.LEASE_NOTICE, wire.number(1, 1), job=job))],
        *(lambda body=body: [wire.head(wire.envelope(body, b"", job=job))]
          for body in (*wire.OTHER_BODIES, *wire.WORKER_BODIES)),
        lambda: [wire.head(wire.header(job=job))],
    ]
    return [makers[i % len(makers)]() for i in range(count)]


def forged_bodies(random, view):
    """Each body of the data plane at least once: functions that take the id of a node in whose name
    it is, and return (its field, its bytes, its frames). Whoever sends them knows all but the
    incarnations of the job's processes, and would do damage if it were believed."""
    table = view["tables"][0]
    shard = table["shards"][0]
    group = view["groups"][0]
    known = {"table": int(table["id"]), "generation": int(shard["generation"])}
    place = wire.nested(1, wire.number(1, known["table"]) + wire.number(3, known["generation"])
                        + wire.number(4, int(shard["chain_epoch"])))
    round_ = wire.number(1, int(group["id"])) + wire.number(2, int(group["generation"]))
    ones = struct.pack("<4f", 1, 1, 1, 1)

    def group_push():
        return wire.group_push(group=int(group["id"]), step=_far(random),
                               group_generation=int(group["generation"]), **known)

    def push(node):
        return wire.push(producer=node, sequence=_far(random), samples=random.choice([1, 1 << 62]),
                         incarnation=_far(random), **known)

    makers = [
        lambda node: (wire.PUSH_REQUEST, push(node), [ones]),
        lambda node: (wire.PUSH_REQUEST, group_push(), [ones]),
        lambda node: (wire.PULL_REQUEST, wire.pull(**known), []),
        lambda node: (wire.PUSH_REPLY, wire.number(2, _far(random)) + wire.number(3, 1), []),
        lambda node: (wire.PULL_REPLY, wire.nested(3, wire.number(1, _far(random))), [ones]),
        lambda node: (wire.REPLICATE_REQUEST, place + wire.number(2, _far(random))
                      + wire.number(3, _far(random)), [ones]),
        lambda node: (wire.REPLICATE_REPLY, place + wire.number(2, _far(random))
                      + wire.number(3, _far(random)), []),
        lambda node: (wire.REPLICA_PIECE, place + wire.number(2, _far(random)) + wire.number(5, 0)
                      + wire.number(6, 1) + wire.number(7, 1), [ones]),
        lambda node: (wire.GROUP_SLICE, wire.nested(12, round_) + wire.number(4, _far(random))
                      + wire.number(8, 1), [ones[:4]]),
        lambda node: (wire.GROUP_ABORT, wire.nested(5, round_) + wire.nested(3, b"forged"), []),
        lambda node: (wire.GROUP_PROBE, wire.nested(6, round_) + wire.nested(10, wire.number(
            1, _far(random))), []),
        lambda node: (wire.GROUP_HELLO, wire.nested(1, round_), [ones]),
        lambda node: (wire.PEER_PROBE, wire.number(1, _far(random))
                      + wire.number(2, random.choice([0, 1])), [ones]),
        lambda node: (wire.WATCH_VIEW_REPLY, _view(1), []),
        lambda node: (wire.LEASE_NOTICE, wire.number(1, _far(random)), []),
    ]
    missing = set(wire.DATA_BODIES) - {maker(0)[0] for maker in makers}
    assert not missing, f"proto/envelope.proto has bodies that nobody forges: {missing}"
    return makers


def forged_messages(random, count, view):
    """Such messages in the names of nodes of the view, each a list of parts."""
    makers = forged_bodies(random, view)
    messages = []
    for i in range(count):
        node = random.choice(view["nodes"])
        body_field, body, frames = makers[i % len(makers)](int(node["id"]))
        # The sender knows requests by their numbers, which begin at 1.
        messages.append([wire.head(wire.envelope(
            body_field, body, frames, job=int(view["job"]), node=int(node["id"]),
            incarnation=random.choice([0, _far(random), random.getrandbits(64)]),
            request_id=1 + i // 8, epoch=random.choice([int(view["epoch"]), _far(random)]))), *frames])
    return messages


def _far(random):
    """A number close to an honest one, or to the end of all numbers."""
    return random.choice([2, 3, (1 << 62) - 1, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1])


def _envelope(job, sizes=None):
    return wire.envelope(wire.PUSH_REQUEST, wire.push(table=1), sizes=sizes, job=job)


def _head(job):
    return wire.head(_envelope(job))


def _with_frames(job, count):
    frames = [bytes(8)] * count
    return [wire.head(wire.envelope(wire.PUSH_REQUEST, wire.push(1), frames, job=job)), *frames]


def _view(field):
    """The field of a reply that holds a view; this view claims to be the newest of all."""
    return wire.nested(field, wire.number(3, 1 << 62))


def _flipped(random, data):
    at = random.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :]


def _truncated(random, data):
    """Truncated inside the last field, which then claims more bytes than there are."""
    return data[: len(data) - random.randrange(1, 10)]


def control_garbage(random, count, job):
    """First bytes of connections to the scheduler's port. `job`: its name."""
    methods = [*wire.methods(), b"NoSuchMethod"]
    opening = http2.opening()
    makers = [
        lambda: random.randbytes(random.randrange(1, 4096)),
        lambda: http2.PREFACE[: random.randrange(len(http2.PREFACE))],
        lambda: opening + random.randbytes(random.randrange(1, 4096)),
        lambda: opening + http2.frame(random.randrange(12), random.randrange(256),
                                      random.randrange(4), random.randbytes(random.randrange(200))),
        lambda: opening + http2.frame(http2.HEADERS, http2.END_HEADERS, 1, claimed=(1 << 24) - 1),
        lambda: opening + http2.frame(http2.HEADERS, http2.END_HEADERS, 1, random.randbytes(100)),
        lambda: opening + http2.frame(http2.HEADERS, 0, 1, http2.headers(b"/x"))
        + http2.frame(http2.CONTINUATION, 0, 1, bytes(16)) * 100,
        lambda: opening + http2.frame(http2.PING, 0, 0, bytes(8)) * 200,
        lambda: opening + http2.frame(http2.WINDOW_UPDATE, 0, 0, b"\x7f\xff\xff\xff") * 2,
        lambda: opening + http2.call(random.choice(methods),
                                     http2.grpc_message(random.randbytes(random.randrange(300)))),
        lambda: opening + http2.call(random.choice(methods), http2.grpc_message(
            b"", claimed=random.choice([1, 1 << 24, (1 << 32) - 1]))),
        lambda: opening + http2.call(random.choice(methods),
                                     http2.grpc_message(bytes(8), compressed=1)),
        lambda: opening + http2.call(b"Register", http2.grpc_message(_registration(random, job))),
        lambda: opening + http2.call(b"CreateTable", http2.grpc_message(_table(random))),
        lambda: opening + http2.call(b"Barrier", http2.grpc_message(
            wire.nested(2, b"x") + wire.number(3, (1 << 32) - 1) + wire.number(5, (1 << 32) - 1))),
    ]
    return [makers[i % len(makers)]() for i in range(count)]


def _registration(random, job):
    """Well-formed nonsense: unknown roles, ranks and endpoints, or another job."""
    return (wire.nested(2, random.choice([b"", b"another job", b"\xff\xfe", job, job, job]))
            + wire.number(3, random.choice([0, 1, 2, 3, 4, 99])) + wire.number(4, 1 << 31)
            + wire.nested(5, b"l" * random.choice([0, 1000]))
            + wire.nested(6, b"tcp://nowhere") * random.randrange(1, 1000)
            + wire.number(7, (1 << 64) - 1) + wire.nested(8, b"h" * random.choice([0, 5000])))


def _table(random):
    """A spec whose sizes exceed any machine."""
    extents = b"".join(wire.varint(random.choice([0, 1, 1 << 40, (1 << 64) - 1]))
                       for _ in range(random.randrange(20)))
    learning_rate = wire.nested(6, b"\x09" + struct.pack("<d", random.choice([-1, 1e300])))
    return wire.nested(2, wire.nested(1, b"t" * random.randrange(600)) + wire.number(2, 1)
                       + wire.nested(3, extents) + learning_rate
                       + wire.nested(7, wire.number(1, random.randrange(9)))
                       + wire.number(10, (1 << 64) - 1))
