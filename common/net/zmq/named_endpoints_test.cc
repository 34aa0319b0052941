// SPDX-License-Identifier: Apache-2.0
#include "common/net/zmq/named_endpoints.h"

#include <gtest/gtest.h>

#include "common/net/testing/named_endpoints_fixture.h"

namespace covey {
namespace {

class NamedEndpointsTest : public NamedEndpointsFixture {};

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
