// SPDX-License-Identifier: Apache-2.0
#include "client/engine/sending/kept_key_lists.h"

#include "common/cluster/limits.h"
#include "gtest/gtest.h"

namespace covey::client {
namespace {

constexpr ShardId kShard{.table = TableId(1), .index = ShardIndex(0)};
constexpr ShardId kOther{.table = TableId(1), .index = ShardIndex(1)};
const KeptKeyLists::Keeper kHead{.head = {NodeId(3), 1}, .generation = 7};

KeyListName Name(uint64_t number) { return {.low = number, .high = 1}; }

TEST(KeptKeyListsTest, KnowsWhatRepliesHaveSaid) {
  KeptKeyLists lists;
  EXPECT_FALSE(lists.Contains(kShard, kHead, Name(1)));
  lists.Observe(kShard, kHead, Name(1), 0);
  EXPECT_FALSE(lists.Contains(kShard, kHead, Name(1)));
  lists.Observe(kShard, kHead, KeyListName(), 1);
  EXPECT_FALSE(lists.Contains(kShard, kHead, KeyListName()));
  lists.Observe(kShard, kHead, Name(1), 1);
  EXPECT_TRUE(lists.Contains(kShard, kHead, Name(1)));
  EXPECT_FALSE(lists.Contains(kOther, kHead, Name(1)));
  lists.Forget(kOther, Name(1));
  lists.Forget(kShard, Name(2));
  EXPECT_TRUE(lists.Contains(kShard, kHead, Name(1)));
  lists.Forget(kShard, Name(1));
  EXPECT_FALSE(lists.Contains(kShard, kHead, Name(1)));
}

TEST(KeptKeyListsTest, TheListsThatWereUsedLastAreKept) {
  KeptKeyLists lists;
  for (uint32_t number = 1; number <= 3; ++number) {
    lists.Observe(kShard, kHead, Name(number), number);
  }
  lists.Observe(kShard, kHead, Name(1), 3);
  lists.Observe(kShard, kHead, Name(4), 2);
  EXPECT_TRUE(lists.Contains(kShard, kHead, Name(4)));
  EXPECT_TRUE(lists.Contains(kShard, kHead, Name(1)));
  EXPECT_FALSE(lists.Contains(kShard, kHead, Name(3)));
  // Whatever a server says, the memory has its limit.
  for (uint64_t number = 1; number <= kKeyListsPerShardMax + 5; ++number) {
    lists.Observe(kShard, kHead, Name(100 + number), 0xffffffff);
  }
  EXPECT_FALSE(lists.Contains(kShard, kHead, Name(105)));
  EXPECT_TRUE(lists.Contains(kShard, kHead, Name(106)));
}

TEST(KeptKeyListsTest, AnotherHeadOrGenerationKnowsNone) {
  KeptKeyLists lists;
  lists.Observe(kShard, kHead, Name(1), 1);
  const KeptKeyLists::Keeper next{.head = {NodeId(4), 1}, .generation = 7};
  const KeptKeyLists::Keeper later{.head = kHead.head, .generation = 8};
  EXPECT_FALSE(lists.Contains(kShard, next, Name(1)));
  EXPECT_FALSE(lists.Contains(kShard, later, Name(1)));
  lists.Observe(kShard, next, Name(2), 5);
  EXPECT_TRUE(lists.Contains(kShard, next, Name(2)));
  EXPECT_FALSE(lists.Contains(kShard, next, Name(1)));
  EXPECT_FALSE(lists.Contains(kShard, kHead, Name(1)));
}

}  // namespace
}  // namespace covey::client
