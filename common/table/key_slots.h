// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/base/random.h"

namespace covey {

// The keys of a sparse table are spread over slots, and its shards are ranges of slots. A slot is
// the first 16 bits of the mixed key, so equal numbers of slots hold about equal numbers of keys,
// however a program chooses its keys.
inline constexpr uint64_t kKeySlots = uint64_t{1} << 16;

constexpr uint64_t SlotOfKey(uint64_t key) { return MixBits(key) >> 48; }

}  // namespace covey
