// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/container/btree_set.h"

namespace covey {

// Counts connections that ended before they had completed ZeroMQ's handshake. libzmq reports some
// of these as failed and does not report others (bytes that look like its oldest protocol). So the
// count is computed from events that libzmq always reports: accepted, handshake done, closed.
//
// A handshake is reported without its connection. While several connections with unknown handshakes
// are open, a closed one is taken for a good one, and another is counted in its place. So the total
// is exact once those have closed, too. Actor-confined.
class HandshakeCounter {
 public:
  void Accepted(int connection) { unknown_.insert(connection); }
  void Succeeded() {
    ++successes_;
    if (successes_ < unknown_.size()) return;
    unknown_.clear();
    successes_ = 0;
  }
  void Closed(int connection) {
    if (unknown_.erase(connection) == 0) return;
    if (successes_ == 0) {
      ++failed_;
      return;
    }
    --successes_;
    if (successes_ == unknown_.size()) {
      unknown_.clear();
      successes_ = 0;
    }
  }

  uint64_t failed() const { return failed_; }

 private:
  absl::btree_set<int> unknown_;  // open, and perhaps without a handshake
  size_t successes_ = 0;          // handshakes among `unknown_`; fewer than those
  uint64_t failed_ = 0;
};

}  // namespace covey
