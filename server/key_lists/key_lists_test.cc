// SPDX-License-Identifier: Apache-2.0
#include "server/key_lists/key_lists.h"

#include <memory>
#include <vector>

#include "common/cluster/limits.h"
#include "gtest/gtest.h"

namespace covey::server {
namespace {

constexpr ListOwner kFlood{.node = NodeId(5), .incarnation = Incarnation(1)};
constexpr ListOwner kQuiet{.node = NodeId(6), .incarnation = Incarnation(2)};
constexpr ShardId kShard{.table = TableId(1), .index = ShardIndex(0)};
constexpr ShardId kOther{.table = TableId(1), .index = ShardIndex(1)};
constexpr size_t kPlenty = 64 << 20;

KeyListName Name(uint64_t number) { return {.low = number, .high = ~number}; }

// Of so many keys.
std::shared_ptr<const ListedKeys> List(uint32_t count) {
  auto list = std::make_shared<ListedKeys>();
  list->encoded.list.set_count(count);
  list->encoded.frame = Buffer::Allocate(count * size_t{2});
  list->keys = Buffer::Allocate(count * sizeof(uint64_t));
  return list;
}

TEST(KeyListsTest, AListIsForOneClientAndShardAndForItsCount) {
  KeyLists lists(kPlenty);
  const auto list = List(7);
  lists.Keep(kFlood, kShard, Name(1), list);
  EXPECT_EQ(lists.Use(kFlood, kShard, Name(1), 7), list);
  EXPECT_EQ(lists.Use(kFlood, kShard, Name(1), 8), nullptr);
  EXPECT_EQ(lists.Use(kFlood, kShard, Name(2), 7), nullptr);
  EXPECT_EQ(lists.Use(kFlood, kShard, KeyListName(), 7), nullptr);
  EXPECT_EQ(lists.Use(kFlood, kOther, Name(1), 7), nullptr);
  EXPECT_EQ(lists.Use(kQuiet, kShard, Name(1), 7), nullptr);
  EXPECT_EQ(lists.Use({kFlood.node, kQuiet.incarnation}, kShard, Name(1), 7), nullptr);
  // A later list of the same name takes its place.
  const auto later = List(3);
  const size_t before = lists.bytes();
  lists.Keep(kFlood, kShard, Name(1), later);
  EXPECT_EQ(lists.Use(kFlood, kShard, Name(1), 3), later);
  EXPECT_EQ(before - lists.bytes(), size_t{4 * 10});
  EXPECT_EQ(lists.KeptWith(kFlood, kShard, Name(1)), 1);
}

TEST(KeyListsTest, TheListsOfAClientGoOldestFirst) {
  KeyLists lists(kPlenty);
  constexpr uint32_t kCount = 100'000;  // a megabyte
  for (uint64_t number = 1; number <= 8; ++number) {
    lists.Keep(kFlood, kShard, Name(number), List(kCount));
    ASSERT_NE(lists.Use(kFlood, kShard, Name(1), kCount), nullptr);
    ASSERT_LE(lists.bytes(), kKeyListBytesPerClientMax);
  }
  const uint32_t kept = lists.KeptWith(kFlood, kShard, Name(8));
  lists.Keep(kFlood, kOther, Name(100), List(kCount));
  // The first one has just been used, so the second went.
  EXPECT_EQ(lists.KeptWith(kFlood, kShard, Name(1)), kept - 1);
  EXPECT_EQ(lists.KeptWith(kFlood, kOther, Name(100)), 1);
  EXPECT_EQ(lists.KeptWith(kFlood, kShard, Name(2)), 0);
  EXPECT_EQ(lists.Use(kFlood, kShard, Name(2), kCount), nullptr);
  EXPECT_NE(lists.Use(kFlood, kShard, Name(8), kCount), nullptr);
}

TEST(KeyListsTest, AFloodOfListsCostsNobodyElseTheirs) {
  constexpr uint32_t kCount = 1'000;
  KeyLists lists(kKeyListBytesPerClientMax / 2);
  lists.Keep(kQuiet, kShard, Name(1), List(kCount));
  for (uint64_t number = 1; number <= 2'000; ++number) {
    lists.Keep(kFlood, kShard, Name(number), List(kCount));
    ASSERT_LE(lists.bytes(), kKeyListBytesPerClientMax / 2);
  }
  EXPECT_NE(lists.Use(kQuiet, kShard, Name(1), kCount), nullptr);
  EXPECT_NE(lists.Use(kFlood, kShard, Name(2'000), kCount), nullptr);
  EXPECT_EQ(lists.Use(kFlood, kShard, Name(1), kCount), nullptr);
  // What does not fit is not kept, and nothing goes for it.
  const size_t before = lists.bytes();
  lists.Keep(kFlood, kShard, Name(9'999), List(kKeysPerRequestMax));
  EXPECT_EQ(lists.KeptWith(kFlood, kShard, Name(9'999)), 0);
  EXPECT_EQ(lists.bytes(), before);
}

TEST(KeyListsTest, ListsOfClosedShardsAndOfClientsThatAreGoneAreForgotten) {
  KeyLists lists(kPlenty);
  for (const ListOwner& owner : {kFlood, kQuiet}) {
    lists.Keep(owner, kShard, Name(1), List(5));
    lists.Keep(owner, kOther, Name(1), List(5));
  }
  lists.Forget(kShard);
  EXPECT_EQ(lists.Use(kFlood, kShard, Name(1), 5), nullptr);
  EXPECT_NE(lists.Use(kFlood, kOther, Name(1), 5), nullptr);
  lists.ForgetClients([](NodeId id) { return id == kFlood.node; });
  EXPECT_EQ(lists.Use(kFlood, kOther, Name(1), 5), nullptr);
  EXPECT_NE(lists.Use(kQuiet, kOther, Name(1), 5), nullptr);
  lists.Forget(kOther);
  EXPECT_EQ(lists.bytes(), 0);
}

TEST(KeyListsTest, ListsBeyondASmallerMaximumGo) {
  KeyLists lists(kPlenty);
  for (uint64_t number = 1; number <= 4; ++number) {
    lists.Keep(kFlood, kShard, Name(number), List(100));
  }
  lists.SetBytesMax(lists.bytes() / 2);
  EXPECT_EQ(lists.KeptWith(kFlood, kShard, Name(4)), 2u);
  EXPECT_EQ(lists.Use(kFlood, kShard, Name(2), 100), nullptr);
  lists.SetBytesMax(0);
  EXPECT_EQ(lists.bytes(), 0u);
  lists.SetBytesMax(kPlenty);
  lists.Keep(kFlood, kShard, Name(5), List(100));
  EXPECT_NE(lists.Use(kFlood, kShard, Name(5), 100), nullptr);
}

}  // namespace
}  // namespace covey::server
