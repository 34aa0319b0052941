// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "common/security/openssl.h"
#include "common/security/secret.h"

namespace covey {

// AES-128 in Galois/Counter Mode (NIST SP 800-38D) over the parts of messages, under one key. A
// part's nonce is the salt XOR (message number, part number), as TLS 1.3 makes its own (RFC 8446,
// section 5.3): the owner of a key gives each part that it seals another pair of numbers, because
// two parts under one nonce give away the key. Movable; actor-confined. OpenSSL overwrites the key
// when it goes. No call allocates. Cost: 0.3 ns per byte on the reference machine.
class PartCipher {
 public:
  static constexpr size_t kKeyBytes = 16;
  static constexpr size_t kSaltBytes = 12;
  static constexpr size_t kTagBytes = 16;
  using Tag = std::array<uint8_t, kTagBytes>;

  enum class Use { kSeal, kOpen };
  struct Number {
    uint64_t message = 0;
    uint32_t part = 0;
  };

  // `key` is the key, then the salt. INTERNAL: OpenSSL fails.
  static absl::StatusOr<PartCipher> Make(Use use, const Secret& key_and_salt);

  // Encrypts `plain` to `sealed`, which has the same size and may be the same memory; the tag
  // covers `additional`, too, which stays readable. False: OpenSSL fails, or 2^31 bytes are
  // exceeded; then what was written must not be sent.
  bool Seal(const Number& number, std::span<const uint8_t> additional,
            std::span<const uint8_t> plain, uint8_t* sealed, std::span<uint8_t, kTagBytes> tag);

  // The reverse. False when the tag is not that of these bytes under this key and number; then what
  // was written must not be used.
  bool Open(const Number& number, std::span<const uint8_t> additional,
            std::span<const uint8_t> sealed, std::span<const uint8_t, kTagBytes> tag,
            uint8_t* plain);

 private:
  using ContextPointer = std::unique_ptr<EVP_CIPHER_CTX, OpenSslRelease<EVP_CIPHER_CTX_free>>;

  PartCipher() = default;
  std::array<uint8_t, kSaltBytes> NonceOf(const Number& number) const;
  bool Update(std::span<const uint8_t> additional, std::span<const uint8_t> from, uint8_t* to);

  ContextPointer context_;
  std::array<uint8_t, kSaltBytes> salt_;
};

}  // namespace covey
