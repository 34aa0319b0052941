// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace covey::sim {

// The tables of the workload "momentum": a push adds 1 to its slot, and each later update of the
// shard adds half of what the one before has added there, because the optimizer's velocity is
// halved. So a value says how many updates ago its push was applied. A velocity that is lost on the
// way stops it: later values say less than there were.
inline constexpr double kMomentumOfTable = 0.5;
// From so many updates on float32 rounds the value to 2.
inline constexpr uint64_t kUpdatesUntilTwo = 24;

// How many updates ago the push of a slot with this value was applied, once: 0 = in the newest one.
// kUpdatesUntilTwo means as many, or more. Nothing: no such push leaves this value. Pure.
std::optional<uint64_t> UpdatesSince(float value);

}  // namespace covey::sim
