// SPDX-License-Identifier: Apache-2.0
#include "common/net/zmq/routing_id.h"

#include <gtest/gtest.h>

#include <vector>

namespace covey {
namespace {

TEST(RoutingIdTest, AConnectionLeadsBackToItsId) {
  for (const RoutingId id :
       {RoutingId{0, 0, 0, 0, 0}, RoutingId{0, 1, 2, 3, 4}, RoutingId{0, 0xff, 0x80, 0, 0xff}}) {
    const uint64_t connection = PackRoutingId(id);
    EXPECT_NE(connection, 0u);
    EXPECT_EQ(UnpackRoutingId(connection), id);
  }
}

TEST(RoutingIdTest, AnIdThatAPeerChoseHasNoConnection) {
  EXPECT_EQ(PackRoutingId(std::vector<uint8_t>{}), 0u);
  EXPECT_EQ(PackRoutingId(std::vector<uint8_t>{0, 1, 2, 3}), 0u);
  EXPECT_EQ(PackRoutingId(std::vector<uint8_t>{0, 1, 2, 3, 4, 5}), 0u);
  EXPECT_EQ(PackRoutingId(std::vector<uint8_t>{'m', 1, 2, 3, 4}), 0u);
}

}  // namespace
}  // namespace covey
