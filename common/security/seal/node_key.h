// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "absl/status/statusor.h"
#include "common/security/secret.h"

namespace covey {

// An X25519 key pair (RFC 7748): two processes that know each other's public key agree on a secret
// that nobody else can compute. Immutable; the private half is overwritten when it goes.
class NodeKey {
 public:
  static constexpr size_t kBytes = 32;
  using Public = std::array<uint8_t, kBytes>;

  // From OpenSSL's generator of random numbers. INTERNAL: OpenSSL fails.
  static absl::StatusOr<NodeKey> Make();
  // The pair with this private half, of kBytes bytes. INTERNAL: OpenSSL fails.
  static absl::StatusOr<NodeKey> FromPrivate(Secret private_half);

  const Public& public_half() const { return public_; }

  // The secret shared with the owner of `peer`, kBytes bytes. Not a key yet: see hkdf.h. About 50
  // us. INVALID_ARGUMENT: `peer` is one of the few public keys for which the secret does not depend
  // on this pair (RFC 7748, section 6.1).
  absl::StatusOr<Secret> Agree(std::span<const uint8_t, kBytes> peer) const;

 private:
  NodeKey(Secret private_half, const Public& public_half)
      : private_(std::move(private_half)), public_(public_half) {}

  Secret private_;
  Public public_;
};

}  // namespace covey
