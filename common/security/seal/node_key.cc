// SPDX-License-Identifier: Apache-2.0
#include "common/security/seal/node_key.h"

#include <openssl/err.h>
#include <openssl/rand.h>

#include "common/base/check.h"
#include "common/security/openssl.h"

namespace covey {
namespace {

using ContextPointer = std::unique_ptr<EVP_PKEY_CTX, OpenSslRelease<EVP_PKEY_CTX_free>>;

uint8_t* BytesOf(Secret& secret) { return reinterpret_cast<uint8_t*>(secret.bytes().data()); }

KeyPointer PrivateKeyOf(const Secret& private_half) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(private_half.view().data());
  return KeyPointer(
      EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nullptr, bytes, private_half.view().size()));
}

}  // namespace

absl::StatusOr<NodeKey> NodeKey::Make() {
  Secret private_half(kBytes);
  if (RAND_priv_bytes(BytesOf(private_half), static_cast<int>(kBytes)) != 1) {
    return OpenSslFailure("drawing a node key");
  }
  return FromPrivate(std::move(private_half));
}

absl::StatusOr<NodeKey> NodeKey::FromPrivate(Secret private_half) {
  COVEY_CHECK(private_half.view().size() == kBytes);
  const KeyPointer key = PrivateKeyOf(private_half);
  Public public_half;
  size_t bytes = public_half.size();
  if (key == nullptr || EVP_PKEY_get_raw_public_key(key.get(), public_half.data(), &bytes) != 1 ||
      bytes != kBytes) {
    return OpenSslFailure("computing a public node key");
  }
  return NodeKey(std::move(private_half), public_half);
}

absl::StatusOr<Secret> NodeKey::Agree(std::span<const uint8_t, kBytes> peer) const {
  const KeyPointer own = PrivateKeyOf(private_);
  const KeyPointer other(
      EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nullptr, peer.data(), peer.size()));
  if (own == nullptr || other == nullptr) return OpenSslFailure("reading a node key");
  const ContextPointer context(EVP_PKEY_CTX_new(own.get(), nullptr));
  if (context == nullptr || EVP_PKEY_derive_init(context.get()) != 1 ||
      EVP_PKEY_derive_set_peer(context.get(), other.get()) != 1) {
    return OpenSslFailure("agreeing on a secret");
  }
  Secret secret(kBytes);
  size_t bytes = kBytes;
  // Fails when all bytes are 0.
  if (EVP_PKEY_derive(context.get(), BytesOf(secret), &bytes) != 1 || bytes != kBytes) {
    ERR_clear_error();
    return absl::InvalidArgumentError("the peer's public key gives no secret");
  }
  return secret;
}

}  // namespace covey
