// SPDX-License-Identifier: Apache-2.0
#include "common/net/zmq/named_endpoints.h"

#include <gtest/gtest.h>

#include <thread>

#include "common/base/clock.h"

namespace covey {
namespace {

constexpr Address kPeer = {NodeId(2), 1};
using Changes = std::vector<std::pair<Address, std::string>>;

// Real lookups, and virtual times of the next ones.
class NamedEndpointsTest : public testing::Test {
 protected:
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

TEST_F(NamedEndpointsTest, TellsOfAnAddressOnceAndLooksAgainLater) {
  EXPECT_EQ(names_.NextChange(now_), absl::InfiniteFuture());
  names_.Add(kPeer, "tcp://localhost:7000");
  EXPECT_EQ(Await(), (Changes{{kPeer, "tcp://127.0.0.1:7000"}}));
  EXPECT_EQ(names_.NextChange(now_), now_ + absl::Seconds(30));
  now_ += absl::Seconds(30);
  EXPECT_EQ(Await(), Changes()) << "it has not changed";
  EXPECT_EQ(names_.NextChange(now_), now_ + absl::Seconds(30));
}

TEST_F(NamedEndpointsTest, LooksAgainSoonForANameWithoutAddress) {
  names_.Add(kPeer, "tcp://nowhere.invalid:7000");
  EXPECT_EQ(Await(), Changes());
  EXPECT_EQ(names_.NextChange(now_), now_ + absl::Seconds(1));
  names_.Remove(kPeer);
  EXPECT_EQ(names_.NextChange(now_), absl::InfiniteFuture());
}

}  // namespace
}  // namespace covey
