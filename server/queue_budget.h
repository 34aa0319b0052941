// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "absl/status/status.h"

namespace covey::server {

// Bytes that may wait in one data loop, over all of its shards. A running sum: each shard reports
// how its own bytes have changed, so that a request costs the same whether the loop has one shard
// or thousands.
//
// Some of the bytes are gradients that wait for the pushes of others. If these others were refused
// because of them, nothing would move any more. So the requests that gradients may wait for are
// refused only because of the other bytes.
//
// Actor-confined.
class QueueBudget {
 public:
  explicit QueueBudget(size_t bytes_max) : bytes_max_(bytes_max) {}

  // The bytes of one shard have changed. Precondition: `before` is what it reported last; 0 at
  // first.
  void Change(size_t before, size_t after);
  // The same for the part of them that waits for pushes.
  void ChangeHeld(size_t before, size_t after);
  // What waits already goes on to wait.
  void SetMax(size_t bytes_max) { bytes_max_ = bytes_max; }
  // Which bytes count for a request.
  enum class Counted { kAll, kAllButHeld };
  // RESOURCE_EXHAUSTED: more bytes wait than allowed.
  absl::Status Check(Counted counted) const;

 private:
  size_t bytes_max_;
  size_t bytes_ = 0;
  size_t held_bytes_ = 0;  // of them
};

}  // namespace covey::server
