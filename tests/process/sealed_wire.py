# SPDX-License-Identifier: Apache-2.0
"""Sealed messages as bytes, written by hand from common/net/wire.h: what a node of the job could
send if it were dishonest."""

import struct

from tests.process import openssl, wire

_LABEL = b"covey data plane 1"
_TAGS_OFFSET = 48
_TAG_BYTES = 16


def head_fields(head):
    """(sender's node, sender's loop, receiver's loop, receiver's node, number) of a head frame."""
    return struct.unpack("<QIIQQ", head[16:_TAGS_OFFSET])


def with_fields(head, **changed):
    """The head frame with other fields in the clear."""
    names = ("sender", "sender_loop", "receiver_loop", "receiver", "number")
    fields = {**dict(zip(names, head_fields(head))), **changed}
    return head[:16] + struct.pack("<QIIQQ", *(fields[name] for name in names)) + head[_TAGS_OFFSET:]


class Link:
    """The keys between a node and one loop of another node.

    job: its fingerprint. own, peer: (node id, loop, public key).
    """

    def __init__(self, key, job, own, peer):
        self._pair, self._job, self._own, self._peer = key.agree(peer[2]), job, own, peer

    def _cipher(self, sender, receiver, number):
        purpose = (_LABEL + struct.pack("<Q", self._job) + sender[2] + receiver[2]
                   + struct.pack("<QQIIQ", sender[0], receiver[0], sender[1], receiver[1],
                                 number >> 16))
        made = openssl.hkdf(_LABEL, self._pair, purpose, 28)
        return made[:16], made[16:]

    def seal(self, number, envelope, frames=()):
        """The parts of a message."""
        key, salt = self._cipher(self._own, self._peer, number)
        sealed = [openssl.seal(key, openssl.nonce(salt, number, i + 1), b"", frame)
                  for i, frame in enumerate(frames)]
        clear = (b"CVEY" + bytes([1, 1, 0, 0]) + struct.pack("<II", len(envelope), len(frames))
                 + struct.pack("<QIIQQ", self._own[0], self._own[1], self._peer[1], self._peer[0],
                               number) + b"".join(tag for _, tag in sealed))
        text, tag = openssl.seal(key, openssl.nonce(salt, number, 0), clear, envelope)
        return [clear + tag + text, *(frame for frame, _ in sealed)]

    def open(self, head):
        """The envelope of a message that the peer has sent; None if it has not."""
        number = head_fields(head)[4]
        tags = _TAGS_OFFSET + _TAG_BYTES * struct.unpack("<I", head[12:16])[0]
        key, salt = self._cipher(self._peer, self._own, number)
        return openssl.unseal(key, openssl.nonce(salt, number, 0), head[:tags],
                              head[tags + _TAG_BYTES:], head[tags:tags + _TAG_BYTES])


def envelope(body_field, body, frames=(), sizes=None, own_loop=0, to=(0, 0), **identity):
    """wire.envelope with the loops and the receiver that a sealed message names again."""
    checksums = b"".join(struct.pack("<I", wire.crc32c(frame)) for frame in frames)
    return (wire.envelope(body_field, body, frames, sizes, **identity) + wire.number(2, own_loop)
            + wire.number(wire.TO_NODE, to[0]) + wire.number(wire.TO_LOOP, to[1])
            + wire.nested(wire.FRAME_CHECKSUMS, checksums))
