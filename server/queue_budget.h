// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "absl/status/status.h"

namespace covey::server {

// Bytes that may wait in one data loop, over all of its shards. A running sum: each shard reports
// how its own bytes have changed, so that a request costs the same whether the loop has one shard
// or thousands.
//
// Actor-confined.
class QueueBudget {
 public:
  explicit QueueBudget(size_t bytes_max) : bytes_max_(bytes_max) {}

  // The bytes of one shard have changed. Precondition: `before` is what it reported last; 0 at
  // first.
  void Change(size_t before, size_t after);
  // What waits already goes on to wait.
  void SetMax(size_t bytes_max) { bytes_max_ = bytes_max; }
  // RESOURCE_EXHAUSTED: more bytes wait than allowed.
  absl::Status Check() const;

 private:
  size_t bytes_max_;
  size_t bytes_ = 0;
};

}  // namespace covey::server
