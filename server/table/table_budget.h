// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

#include "absl/status/status.h"

namespace covey::server {

// Bytes that the tables of a server may take, over all of its data loops: values, the state of
// optimizers, and rows. Each shard has a share, by which it says how much it takes.
//
// Not in it: the index of a sparse table, about 40 bytes per row; what requests take while they
// wait (--queued-bytes-max); and buffers that are free.
//
// Thread-safe; its shares are actor-confined. Owned by the process, outlives the loops.
class TableBudget {
 public:
  // What one shard takes of it; nothing at first, and nothing once it is gone.
  class Share {
   public:
    // Null: there is no limit.
    explicit Share(TableBudget* budget) : budget_(budget) {}
    ~Share() { Set(0); }
    Share(const Share&) = delete;

    // The shard is about to take `bytes` in place of what it takes now. RESOURCE_EXHAUSTED: the
    // budget has too few left; then nothing has changed.
    absl::Status Reserve(uint64_t bytes);
    // The shard takes `bytes`, whatever the budget says.
    void Set(uint64_t bytes);
    // As Reserve for `more` bytes than now; takes nothing.
    absl::Status CheckRoom(uint64_t more) const;

   private:
    TableBudget* const budget_;
    uint64_t bytes_ = 0;
  };

  static constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

  explicit TableBudget(uint64_t bytes_max) : bytes_max_(bytes_max) {}
  TableBudget(const TableBudget&) = delete;

  // Tables that take more than this already keep it, and get nothing more.
  void SetMax(uint64_t bytes_max) { bytes_max_ = bytes_max; }

 private:
  // Whether `more` bytes fit, beside `taken`.
  absl::Status CheckFits(uint64_t more, uint64_t taken) const;

  std::atomic<uint64_t> bytes_max_;
  std::atomic<uint64_t> taken_ = 0;
};

}  // namespace covey::server
