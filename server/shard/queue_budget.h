// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "absl/status/status.h"

namespace covey::server {

// Bytes that may wait in one data loop, over all of its shards. A running sum: each shard reports
// how its own bytes have changed, so that a request costs the same whether the loop has one shard
// or thousands.
//
// Gradients and readers wait for pushes of others. If these pushes were refused because of them,
// nothing would move any more. So a request that they may wait for is refused only because of the
// other bytes.
//
// Actor-confined.
class QueueBudget {
 public:
  struct Waiting {
    size_t gradients = 0;  // for pushes
    size_t readers = 0;    // for pushes: their keys and queries
    size_t others = 0;
    size_t sum() const { return gradients + readers + others; }
  };

  explicit QueueBudget(size_t bytes_max) : bytes_max_(bytes_max) {}

  // The bytes of one shard have changed. Precondition: `before` is what it reported last; 0 at
  // first.
  void Change(const Waiting& before, const Waiting& after);
  // What waits already goes on to wait.
  void SetMax(size_t bytes_max) { bytes_max_ = bytes_max; }
  // What there has to be room for, and so which bytes count.
  enum class Request {
    kAwaited,        // gradients and readers may wait for it: the others
    kWaitingReader,  // a reader that has to wait: those of readers, too
    kUnawaited,      // nothing waits for it: all
  };
  // RESOURCE_EXHAUSTED: more bytes wait than allowed.
  absl::Status Check(Request request) const;

 private:
  size_t bytes_max_;
  Waiting waiting_;
};

}  // namespace covey::server
