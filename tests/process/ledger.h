// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "proto/table.pb.h"

namespace covey {

// Tables whose values show which pushes they contain, each applied once, twice or never.
//
// A shard's elements are divided among slots, one per producer at a time. A slot's push number n
// adds 1 to the slot's element n mod kLedgerElements in every shard. Updates are the mean gradient
// at rate 1, so all values are whole and exact below 2^24, in any order.
inline constexpr size_t kLedgerShards = 4;
inline constexpr size_t kLedgerSlots = 4;
inline constexpr size_t kLedgerElements = 512;
inline constexpr size_t kLedgerTableElements = kLedgerShards * kLedgerSlots * kLedgerElements;

// "async" or "buffered:2", with `replicas` per shard (1 = not replicated). INVALID_ARGUMENT: no
// such contract.
absl::StatusOr<proto::TableSpec> LedgerTable(const std::string& contract, uint32_t replicas);
// The same as a sparse table: a slot is a column, and its push number n adds 1 there in the rows of
// LedgerKeys(n).
absl::StatusOr<proto::TableSpec> LedgerRows(const std::string& contract, uint32_t replicas);
// Some keys come in every eighth push, some seldom, and each 64 pushes there is a new one.
constexpr std::array<uint64_t, 4> LedgerKeys(uint64_t number) {
  return {number % 8, 8 + number % 64, 72 + number % 512, 1024 + number / 64};
}
// The elements of each producer's gradients such that a push adds 1: minus the pushes of one
// update.
float LedgerGradient(const proto::TableSpec& table);

// Position in the table of a slot's element in a shard.
constexpr size_t LedgerPosition(size_t shard, size_t slot, uint64_t number) {
  return (shard * kLedgerSlots + slot) * kLedgerElements + number % kLedgerElements;
}

}  // namespace covey
