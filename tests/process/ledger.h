// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/table.pb.h"

namespace covey {

// Tables whose values say which pushes they contain, each applied once, twice or never.
//
// A shard's elements are divided among slots, one per producer at a time. A slot's push of number n
// adds 1 to the slot's element n mod kLedgerElements in every shard. Updates are the mean gradient
// at rate 1, so all values are whole and exact below 2^24, in whatever order.
inline constexpr size_t kLedgerShards = 4;
inline constexpr size_t kLedgerSlots = 4;
inline constexpr size_t kLedgerElements = 512;
inline constexpr size_t kLedgerTableElements = kLedgerShards * kLedgerSlots * kLedgerElements;

// "async" or "buffered:2", replicated so often (1 = not). INVALID_ARGUMENT: no such contract.
absl::StatusOr<proto::TableSpec> LedgerTable(const std::string& contract, uint32_t replicas);
// What each producer's gradients hold, so that a push comes to 1: minus the pushes of one update.
float LedgerGradient(const proto::TableSpec& table);

// Position in the table of a slot's element in a shard.
constexpr size_t LedgerPosition(size_t shard, size_t slot, uint64_t number) {
  return (shard * kLedgerSlots + slot) * kLedgerElements + number % kLedgerElements;
}

}  // namespace covey
