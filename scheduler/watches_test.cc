// SPDX-License-Identifier: Apache-2.0
#include "scheduler/watches.h"

#include "gtest/gtest.h"

namespace covey::scheduler {
namespace {

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);

Message Watch(uint64_t connection, uint64_t known_epoch, uint64_t request_id = 1) {
  Message message;
  message.connection = connection;
  message.envelope.mutable_header()->set_request_id(request_id);
  message.envelope.mutable_watch_view_request()->set_known_epoch(known_epoch);
  return message;
}

std::vector<uint64_t> ConnectionsOf(const std::vector<Message>& messages) {
  std::vector<uint64_t> connections;
  for (const Message& message : messages) connections.push_back(message.connection);
  return connections;
}

TEST(WatchesTest, NewsGoToThoseThatLackThemInTheOrderOfAsking) {
  Watches watches(10);
  EXPECT_TRUE(watches.Add(Watch(3, 5), kStart));
  EXPECT_TRUE(watches.Add(Watch(1, 6), kStart));
  EXPECT_TRUE(watches.Add(Watch(2, 5), kStart));
  EXPECT_EQ(ConnectionsOf(watches.TakeOlderThan(Epoch(6), kStart)), (std::vector<uint64_t>{3, 2}));
  EXPECT_EQ(ConnectionsOf(watches.TakeOlderThan(Epoch(7), kStart)), (std::vector<uint64_t>{1}));
  EXPECT_EQ(watches.NextWake(), absl::InfiniteFuture());
}

TEST(WatchesTest, TheNewestOfAWatcherCounts) {
  Watches watches(1);
  EXPECT_TRUE(watches.Add(Watch(1, 5, /*request_id=*/1), kStart));
  EXPECT_TRUE(watches.Add(Watch(1, 5, /*request_id=*/2), kStart + absl::Seconds(1)));
  EXPECT_EQ(watches.NextWake(), kStart + absl::Seconds(1));
  const std::vector<Message> taken = watches.TakeOlderThan(Epoch(6), kStart);
  ASSERT_EQ(taken.size(), 1);
  EXPECT_EQ(taken[0].envelope.header().request_id(), 2);
}

TEST(WatchesTest, ExpireInTheirTurn) {
  Watches watches(10);
  EXPECT_TRUE(watches.Add(Watch(1, 5), kStart));
  EXPECT_TRUE(watches.Add(Watch(2, 5), kStart + absl::Seconds(1)));
  EXPECT_EQ(ConnectionsOf(watches.TakeExpired(kStart)), (std::vector<uint64_t>{1}));
  EXPECT_EQ(watches.NextWake(), kStart + absl::Seconds(1));
  EXPECT_TRUE(watches.TakeExpired(kStart).empty());
}

TEST(WatchesTest, RefusesMoreThanAllowed) {
  Watches watches(1);
  EXPECT_TRUE(watches.Add(Watch(1, 5), kStart));
  EXPECT_FALSE(watches.Add(Watch(2, 5), kStart));
  EXPECT_EQ(ConnectionsOf(watches.TakeExpired(kStart)), (std::vector<uint64_t>{1}));
  EXPECT_TRUE(watches.Add(Watch(2, 5), kStart));
}

TEST(WatchesTest, NewsWaitUntilEarlierRepliesHaveHadTheirTime) {
  constexpr int kWatchers = 1'000;
  const absl::Duration pause = (kWatchers - Watches::kRepliesAtOnce) * Watches::kReplyTime;
  const auto watch = [](Watches& watches, uint64_t known_epoch) {
    for (uint64_t each = 1; each <= kWatchers; ++each) {
      EXPECT_TRUE(watches.Add(Watch(each, known_epoch), kStart + absl::Seconds(30)));
    }
  };
  Watches watches(2 * kWatchers);
  watch(watches, 5);
  EXPECT_EQ(watches.TakeOlderThan(Epoch(6), kStart).size(), kWatchers);
  watch(watches, 6);
  EXPECT_EQ(watches.NextWake(), kStart + absl::Seconds(30)) << "nothing is new";
  const absl::Time early = kStart + pause - absl::Milliseconds(1);
  EXPECT_TRUE(watches.TakeOlderThan(Epoch(7), early).empty());
  EXPECT_FALSE(watches.MayReply(early));
  EXPECT_EQ(watches.NextWake(), kStart + pause);
  EXPECT_EQ(watches.TakeOlderThan(Epoch(8), kStart + pause).size(), kWatchers);
  EXPECT_FALSE(watches.MayReply(kStart + pause));
}

TEST(WatchesTest, FewRepliesLeaveAtOnce) {
  Watches watches(10);
  for (int each = 0; each <= Watches::kRepliesAtOnce; ++each) {
    EXPECT_TRUE(watches.MayReply(kStart)) << each;
  }
  EXPECT_FALSE(watches.MayReply(kStart));
  EXPECT_TRUE(watches.MayReply(kStart + Watches::kReplyTime));
}

}  // namespace
}  // namespace covey::scheduler
