// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "common/security/secret.h"

namespace covey {

// HKDF with SHA-256 (RFC 5869): makes keys out of a secret that is not evenly distributed. Pure.
// INTERNAL: OpenSSL fails.

inline constexpr size_t kHkdfKeyBytes = 32;

// Step 1: the key for step 2, kHkdfKeyBytes bytes. An empty salt is allowed.
absl::StatusOr<Secret> HkdfExtract(std::span<const uint8_t> salt, const Secret& secret);
// Step 2: `size` bytes for the purpose that `info` describes, at most 255 * 32. About 2 us.
absl::StatusOr<Secret> HkdfExpand(const Secret& key, std::span<const uint8_t> info, size_t size);

}  // namespace covey
