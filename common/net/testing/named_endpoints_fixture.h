// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/cluster/ids.h"
#include "common/net/zmq/named_endpoints.h"

namespace covey {

// Real lookups, and virtual times of the next ones.
class NamedEndpointsFixture : public testing::Test {
 protected:
  using Changes = std::vector<std::pair<Address, std::string>>;
  static constexpr Address kPeer = {NodeId(2), 1};

  // Waits for the end of a lookup.
  Changes Await() {
    const absl::Time until = MonotonicNow() + absl::Seconds(30);
    while (MonotonicNow() < until) {
      Changes changes = names_.TakeChanges(now_);
      if (!changes.empty() || names_.NextChange(now_) > now_ + absl::Milliseconds(10)) {
        return changes;
      }
      std::this_thread::yield();
    }
    ADD_FAILURE() << "a lookup does not end";
    return {};
  }

  absl::Time now_ = absl::UnixEpoch();
  NamedEndpoints names_{{}};
};

}  // namespace covey
