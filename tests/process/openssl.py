# SPDX-License-Identifier: Apache-2.0
"""What an attacker with a good library has: keys, seals and certificates at will, of Debian's
OpenSSL, for tests that make dishonest ones."""

import ctypes
import hashlib
import hmac
import os
import shutil
import ssl
import struct

_crypto = ctypes.CDLL("libcrypto.so.3")
_X25519 = 1034  # NID_X25519
_GET_TAG = 0x10  # EVP_CTRL_AEAD_GET_TAG
_SET_TAG = 0x11
_TAG_BYTES = 16

for _name in ("EVP_PKEY_new_raw_private_key", "EVP_PKEY_new_raw_public_key", "EVP_PKEY_CTX_new",
              "EVP_CIPHER_CTX_new", "EVP_aes_128_gcm", "EVP_sha256", "BIO_new_mem_buf",
              "PEM_read_bio_PrivateKey", "d2i_X509", "X509_getm_notBefore", "X509_getm_notAfter",
              "ASN1_TIME_set"):
    getattr(_crypto, _name).restype = ctypes.c_void_p


def _pointer(value):
    if not value:
        raise OSError("OpenSSL fails")
    return ctypes.c_void_p(value)


def _check(result):
    if result <= 0:
        raise OSError("OpenSSL fails")


class NodeKey:
    """A pair for the data plane, as a process draws it (common/security/seal/node_key.h)."""

    def __init__(self):
        private = os.urandom(32)
        self._key = _pointer(_crypto.EVP_PKEY_new_raw_private_key(
            _X25519, None, private, ctypes.c_size_t(32)))
        public, size = ctypes.create_string_buffer(32), ctypes.c_size_t(32)
        _check(_crypto.EVP_PKEY_get_raw_public_key(self._key, public, ctypes.byref(size)))
        self.public = public.raw

    def agree(self, public):
        """The secret that it shares with the owner of this public key."""
        peer = _pointer(_crypto.EVP_PKEY_new_raw_public_key(
            _X25519, None, public, ctypes.c_size_t(32)))
        context = _pointer(_crypto.EVP_PKEY_CTX_new(self._key, None))
        secret, size = ctypes.create_string_buffer(32), ctypes.c_size_t(32)
        _check(_crypto.EVP_PKEY_derive_init(context))
        _check(_crypto.EVP_PKEY_derive_set_peer(context, peer))
        _check(_crypto.EVP_PKEY_derive(context, secret, ctypes.byref(size)))
        _crypto.EVP_PKEY_CTX_free(context)
        _crypto.EVP_PKEY_free(peer)
        return secret.raw


def hkdf(salt, secret, purpose, size):
    """HKDF with SHA-256 (RFC 5869)."""
    key = hmac.digest(salt, secret, hashlib.sha256)
    found, block = b"", b""
    while len(found) < size:
        block = hmac.digest(key, block + purpose + bytes([len(found) // 32 + 1]), hashlib.sha256)
        found += block
    return found[:size]


def seal(key, nonce, additional, plain):
    """(ciphertext, tag) of AES-128-GCM."""
    context = _pointer(_crypto.EVP_CIPHER_CTX_new())
    sealed, tag = ctypes.create_string_buffer(len(plain) + 1), ctypes.create_string_buffer(16)
    size = ctypes.c_int()
    _check(_crypto.EVP_EncryptInit_ex(
        context, _pointer(_crypto.EVP_aes_128_gcm()), None, key, nonce))
    _update(_crypto.EVP_EncryptUpdate, context, additional, plain, sealed)
    _check(_crypto.EVP_EncryptFinal_ex(
        context, ctypes.create_string_buffer(16), ctypes.byref(size)))
    _check(_crypto.EVP_CIPHER_CTX_ctrl(context, _GET_TAG, _TAG_BYTES, tag))
    _crypto.EVP_CIPHER_CTX_free(context)
    return sealed.raw[: len(plain)], tag.raw


def unseal(key, nonce, additional, sealed, tag):
    """The plain text; None when the tag does not fit."""
    context = _pointer(_crypto.EVP_CIPHER_CTX_new())
    plain = ctypes.create_string_buffer(len(sealed) + 1)
    size = ctypes.c_int()
    _check(_crypto.EVP_DecryptInit_ex(
        context, _pointer(_crypto.EVP_aes_128_gcm()), None, key, nonce))
    _check(_crypto.EVP_CIPHER_CTX_ctrl(context, _SET_TAG, _TAG_BYTES, tag))
    _update(_crypto.EVP_DecryptUpdate, context, additional, sealed, plain)
    good = _crypto.EVP_DecryptFinal_ex(
        context, ctypes.create_string_buffer(16), ctypes.byref(size)) == 1
    _crypto.EVP_CIPHER_CTX_free(context)
    return plain.raw[: len(sealed)] if good else None


def _update(function, context, additional, data, to):
    size = ctypes.c_int()
    for output, given in ((None, additional), (to, data)):
        if given:
            _check(function(context, output, ctypes.byref(size), given, len(given)))


def nonce(salt, message, part):
    """That of a part of a message (common/security/seal/part_cipher.h)."""
    return bytes(a ^ b for a, b in zip(salt, struct.pack("<QI", message, part)))


def sign_again(authority, folder, to, replaced=(b"", b""), begins=None, ends=None):
    """Copies the folder of a node, with another certificate that the authority's key signs.

    replaced: bytes of the certificate, and others of the same length in their place. begins, ends:
    its dates, in seconds since 1970.
    """
    shutil.copytree(folder, to)
    with open(os.path.join(folder, "node.crt"), encoding="ascii") as file:
        end = "-----END CERTIFICATE-----"
        leaf = ssl.PEM_cert_to_DER_cert(file.read().partition(end)[0] + end)
    if replaced[0] not in leaf or len(replaced[0]) != len(replaced[1]):
        raise ValueError(f"cannot replace {replaced}")
    leaf = leaf.replace(*replaced)
    start = ctypes.c_char_p(leaf)
    certificate = _pointer(_crypto.d2i_X509(None, ctypes.byref(start), ctypes.c_long(len(leaf))))
    for at, field in ((begins, "X509_getm_notBefore"), (ends, "X509_getm_notAfter")):
        if at is not None:
            time = _pointer(getattr(_crypto, field)(certificate))
            _pointer(_crypto.ASN1_TIME_set(time, ctypes.c_long(int(at))))
    with open(os.path.join(authority, "ca.key"), "rb") as file:
        text = file.read()
    key = _pointer(_crypto.PEM_read_bio_PrivateKey(
        _pointer(_crypto.BIO_new_mem_buf(text, len(text))), None, None, None))
    _check(_crypto.X509_sign(certificate, key, _pointer(_crypto.EVP_sha256())))
    size = _crypto.i2d_X509(certificate, None)
    signed = ctypes.create_string_buffer(size)
    _check(_crypto.i2d_X509(certificate, ctypes.byref(ctypes.c_void_p(ctypes.addressof(signed)))))
    with open(os.path.join(to, "node.crt"), "w", encoding="ascii") as file:
        file.write(ssl.DER_cert_to_PEM_cert(signed.raw[:size]))
    return to
