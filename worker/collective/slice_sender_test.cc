// SPDX-License-Identifier: Apache-2.0
#include "worker/collective/slice_sender.h"

#include <vector>

#include "common/cluster/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::worker {
namespace {

using ::testing::ElementsAre;

constexpr size_t kSlicesPerPeer = kGroupBytesInFlightPerPeer / kSliceBytesMax;

class SliceSenderTest : public testing::Test {
 protected:
  void Queue(uint64_t collective, size_t bytes, uint32_t peer = 1, int priority = 0) {
    SliceSender::Item item{.collective = collective, .peer = NodeId(peer), .priority = priority};
    item.message.set_to({NodeId(100 + peer), 0});
    item.message.envelope.mutable_group_slice()->set_sequence(collective);
    if (bytes > 0) item.message.frames.push_back(Buffer::Allocate(bytes));
    sender_.Queue(std::move(item));
  }
  // What is sent now.
  std::vector<Message> Advance() {
    sender_.Advance(outbox_, [this](uint64_t collective) { released_.push_back(collective); });
    return outbox_.TakeMessages();
  }

  Outbox outbox_;
  SliceSender sender_;
  std::vector<uint64_t> released_;
};

TEST_F(SliceSenderTest, ReleasesAFrameWhenTheTransportHasLetGo) {
  Queue(7, 64);
  std::vector<Message> sent = Advance();
  ASSERT_EQ(sent.size(), 1u);
  Advance();
  EXPECT_TRUE(released_.empty());
  EXPECT_TRUE(sender_.in_flight());
  EXPECT_THAT(sender_.peers_in_flight(), ElementsAre(NodeId(1)));
  sent.clear();
  Advance();
  EXPECT_THAT(released_, ElementsAre(7));
  EXPECT_FALSE(sender_.in_flight());
}

TEST_F(SliceSenderTest, SaysWhetherItHasSent) {
  const auto ignore = [](uint64_t) {};
  EXPECT_FALSE(sender_.Advance(outbox_, ignore));
  Queue(7, 64);
  EXPECT_TRUE(sender_.Advance(outbox_, ignore));
  EXPECT_FALSE(sender_.Advance(outbox_, ignore));
}

TEST_F(SliceSenderTest, ReleasesAMessageWithoutAFrameAtOnce) {
  Queue(3, 0);
  const std::vector<Message> sent = Advance();
  EXPECT_THAT(released_, ElementsAre(3));
}

TEST_F(SliceSenderTest, HoldsBackWhatOnePeerCannotTakeSoon) {
  for (size_t i = 0; i < kSlicesPerPeer + 3; ++i) Queue(1, kSliceBytesMax, 1);
  Queue(2, kSliceBytesMax, 2);
  std::vector<Message> first = Advance();
  EXPECT_EQ(first.size(), kSlicesPerPeer + 1) << "peer 2 does not wait for peer 1";
  EXPECT_TRUE(Advance().empty());
  first.erase(first.begin());
  EXPECT_EQ(Advance().size(), 1u);
}

TEST_F(SliceSenderTest, HoldsBackWhatTheTransportMightDrop) {
  const size_t fit = kGroupBytesInFlightMax / kSliceBytesMax;
  for (uint32_t i = 0; i < fit + 3; ++i) Queue(1, kSliceBytesMax, i);
  std::vector<Message> first = Advance();
  EXPECT_EQ(first.size(), fit);
  first.resize(fit / 2);  // These are still held.
  EXPECT_EQ(Advance().size(), 3u);
}

TEST_F(SliceSenderTest, NoticesFramesThatAreLetGoOutOfOrder) {
  Queue(1, 8);
  Queue(2, 8);
  std::vector<Message> sent = Advance();
  sent.pop_back();
  Advance();
  EXPECT_THAT(released_, ElementsAre(2));
}

TEST_F(SliceSenderTest, HoldsBackTooManySmallOnes) {
  for (size_t i = 0; i < kGroupSlicesInFlightMax + 1; ++i) Queue(1, 4);
  EXPECT_EQ(Advance().size(), kGroupSlicesInFlightMax);
}

// 64 MB of a tensor that is needed last, then 64 KiB of the one that is needed first.
TEST_F(SliceSenderTest, AnUrgentSliceOvertakesABigTensor) {
  constexpr size_t kBig = size_t{64} << 20;
  for (size_t bytes = 0; bytes < kBig; bytes += kSliceBytesMax) Queue(9, kSliceBytesMax, 1, 9);
  size_t big_sent = 0;
  bool urgent_left = false;
  bool urgent_queued = false;
  while (!urgent_left) {
    // The transport lets go of all it has, then takes more.
    const std::vector<Message> sent = Advance();
    ASSERT_FALSE(sent.empty());
    for (const Message& message : sent) {
      urgent_left = urgent_left || message.envelope.group_slice().sequence() == 1;
      if (!urgent_left) big_sent += message.frames[0].size();
    }
    if (!urgent_queued) Queue(1, 64 << 10, 1, 0);
    urgent_queued = true;
  }
  EXPECT_LT(big_sent, kBig / 4);
}

TEST_F(SliceSenderTest, EqualPrioritiesKeepTheirOrder) {
  for (uint64_t i = 1; i <= 5; ++i) Queue(i, 4, i % 2);
  std::vector<uint64_t> order;
  for (const Message& message : Advance()) {
    order.push_back(message.envelope.group_slice().sequence());
  }
  EXPECT_THAT(order, ElementsAre(1, 2, 3, 4, 5));
}

TEST_F(SliceSenderTest, CancelledOnesAreReleasedUnsent) {
  for (size_t i = 0; i < kGroupSlicesInFlightMax + 2; ++i) Queue(i, 4);
  const std::vector<Message> sent = Advance();
  sender_.CancelQueued([this](uint64_t collective) { released_.push_back(collective); });
  EXPECT_THAT(released_, ElementsAre(kGroupSlicesInFlightMax, kGroupSlicesInFlightMax + 1));
}

TEST_F(SliceSenderTest, OneCollectiveCanBeCancelledAlone) {
  for (size_t i = 0; i < kGroupSlicesInFlightMax; ++i) Queue(1, 4);
  const std::vector<Message> sent = Advance();
  for (uint64_t i = 2; i <= 5; ++i) Queue(i % 2 == 0 ? 2 : 3, 4);
  sender_.CancelQueued(2, [this](uint64_t collective) { released_.push_back(collective); });
  EXPECT_THAT(released_, ElementsAre(2, 2));
}

}  // namespace
}  // namespace covey::worker
