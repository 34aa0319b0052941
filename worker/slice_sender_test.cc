#include "worker/slice_sender.h"

#include <vector>

#include "common/cluster/limits.h"
#include "gtest/gtest.h"

namespace covey::worker {
namespace {

class SliceSenderTest : public testing::Test {
 protected:
  void Queue(uint64_t collective, size_t bytes) {
    Message message;
    if (bytes > 0) message.frames.push_back(Buffer::Allocate(bytes));
    sender_.Queue(collective, std::move(message));
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
  sent.clear();
  Advance();
  EXPECT_EQ(released_, std::vector<uint64_t>{7});
  EXPECT_FALSE(sender_.in_flight());
}

TEST_F(SliceSenderTest, ReleasesAMessageWithoutAFrameAtOnce) {
  Queue(3, 0);
  const std::vector<Message> sent = Advance();
  EXPECT_EQ(released_, std::vector<uint64_t>{3});
}

TEST_F(SliceSenderTest, HoldsBackWhatTheTransportMightDrop) {
  const size_t fit = kGroupBytesInFlightMax / kSliceBytesMax;
  for (size_t i = 0; i < fit + 3; ++i) Queue(1, kSliceBytesMax);
  std::vector<Message> first = Advance();
  EXPECT_EQ(first.size(), fit);
  first.resize(fit / 2);  // The transport frees in order; these are still held.
  EXPECT_TRUE(Advance().empty());
  first.clear();
  EXPECT_EQ(Advance().size(), 3u);
}

TEST_F(SliceSenderTest, HoldsBackTooManySmallOnes) {
  for (size_t i = 0; i < kGroupSlicesInFlightMax + 1; ++i) Queue(1, 4);
  EXPECT_EQ(Advance().size(), kGroupSlicesInFlightMax);
}

TEST_F(SliceSenderTest, CancelledOnesAreReleasedUnsent) {
  for (size_t i = 0; i < kGroupSlicesInFlightMax + 2; ++i) Queue(i, 4);
  const std::vector<Message> sent = Advance();
  sender_.CancelQueued([this](uint64_t collective) { released_.push_back(collective); });
  EXPECT_EQ(released_,
            (std::vector<uint64_t>{kGroupSlicesInFlightMax, kGroupSlicesInFlightMax + 1}));
}

}  // namespace
}  // namespace covey::worker
