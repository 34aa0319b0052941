// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "client/table.h"

namespace covey {
class KeyBatch;
}  // namespace covey

namespace covey::client {

// The keys of a mini-batch, for the rows of a sparse table: sorted, rid of repeats, and divided
// among the shards of the table once, for the pull of the rows and the push of their gradients.
//
//   RowBatch batch;
//   COVEY_RETURN_IF_ERROR(batch.Assign(table, keys));       // in any order; keys may repeat
//   COVEY_RETURN_IF_ERROR(client->Pull(table, batch, rows).Wait());
//   ... rows has one row for each of `keys`, in their order; compute their gradients, then
//   COVEY_RETURN_IF_ERROR(client->Push(table, batch, gradients, {.samples = 64}).Wait());
//
// Gradients of a key that comes more than once are added up, in the order of `keys`.
//
// Copies share the batch, which never changes once an operation uses it. Not thread-safe; copies in
// other threads are. Costs 15 to 30 ns and about 60 bytes per key; Assign reuses the memory when no
// operation uses it any more.
class RowBatch {
 public:
  RowBatch() = default;

  // Replaces the keys. Any 64-bit number is a key. INVALID_ARGUMENT: the table is dense, or there
  // are 2^32 - 1 keys or more.
  absl::Status Assign(const Table& table, std::span<const uint64_t> keys);

  // Keys as they were given, and without repeats.
  size_t size() const;
  size_t distinct() const;

 private:
  friend class ParameterClient;
  friend class RowFilter;
  std::shared_ptr<KeyBatch> batch_;  // null: no key
};

}  // namespace covey::client
