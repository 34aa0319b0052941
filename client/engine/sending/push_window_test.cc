// SPDX-License-Identifier: Apache-2.0
#include "client/engine/sending/push_window.h"

#include <gtest/gtest.h>

#include "common/cluster/limits.h"

namespace covey::client {
namespace {

ShardRequest Push(uint64_t sequence, uint32_t shard = 0, uint32_t group = 0) {
  ShardRequest push;
  push.shard = {TableId(3), ShardIndex(shard)};
  push.producer = GroupId(group);
  push.sequence = sequence;
  return push;
}

TEST(PushWindow, EndsWhereTheShardWouldForgetTheOldest) {
  PushWindow window;
  for (uint64_t sequence = 1; sequence <= kDedupWindow + 1; ++sequence) {
    window.Begin(Push(sequence));
  }
  EXPECT_TRUE(window.HasRoomFor(Push(kDedupWindow)));
  EXPECT_FALSE(window.HasRoomFor(Push(kDedupWindow + 1)));
  window.End(Push(2));
  EXPECT_FALSE(window.HasRoomFor(Push(kDedupWindow + 1))) << "the oldest has not ended";
  window.End(Push(1));
  EXPECT_TRUE(window.HasRoomFor(Push(kDedupWindow + 1)));
}

TEST(PushWindow, IsThatOfOneProducerAndOneShard) {
  PushWindow window;
  window.Begin(Push(1));
  window.Begin(Push(9000, /*shard=*/1));
  window.Begin(Push(9000, /*shard=*/0, /*group=*/7));
  EXPECT_TRUE(window.HasRoomFor(Push(9000, 1)));
  EXPECT_TRUE(window.HasRoomFor(Push(9000, 0, 7)));
}

TEST(PushWindow, AStepThatIsPushedAgainEndsTwice) {
  PushWindow window;
  window.Begin(Push(5, 0, 7));
  window.Begin(Push(5, 0, 7));
  window.Begin(Push(5 + kDedupWindow, 0, 7));
  window.End(Push(5, 0, 7));
  EXPECT_FALSE(window.HasRoomFor(Push(5 + kDedupWindow, 0, 7)));
  window.End(Push(5, 0, 7));
  EXPECT_TRUE(window.HasRoomFor(Push(5 + kDedupWindow, 0, 7)));
}

}  // namespace
}  // namespace covey::client
