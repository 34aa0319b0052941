// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/base/random.h"
#include "common/cluster/limits.h"

namespace covey {

// The keys of a sparse table are spread over kKeySlots slots, and its shards are ranges of slots. A
// slot is the first 16 bits of the mixed key, so equal numbers of slots hold about equal numbers of
// keys, however a program chooses its keys.
constexpr uint64_t SlotOfKey(uint64_t key) { return MixBits(key) >> 48; }
static_assert(~uint64_t{0} >> 48 == kKeySlots - 1);

}  // namespace covey
