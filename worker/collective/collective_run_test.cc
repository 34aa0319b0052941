// SPDX-License-Identifier: Apache-2.0
#include "worker/collective/collective_run.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "common/net/frame_checksum.h"
#include "common/net/testing/frame_lender.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::worker {
namespace {

using ::testing::HasSubstr;

// The runs of one collective on a ring of members, whose messages the test carries.
class RunsTest : public ::testing::Test {
 protected:
  void Make(CollectiveKind kind, uint32_t members, size_t elements, size_t slice_elements,
            absl::string_view attachment = "") {
    const auto* const attached = reinterpret_cast<const uint8_t*>(attachment.data());
    const auto plan =
        std::make_shared<const Plan>(PlanOptions{.algorithm = Algorithm::kRing, .size = members});
    data_.assign(members, std::vector<float>(elements));
    for (uint32_t rank = 0; rank < members; ++rank) {
      for (size_t i = 0; i < elements; ++i) data_[rank][i] = static_cast<float>(rank * 100 + i);
      runs_.push_back(std::make_unique<CollectiveRun>(
          1,
          Collective{
              .id = {.stream = 0, .sequence = 1},
              .kind = kind,
              .data = data_[rank],
              .parts = EvenParts(elements, members),
              .attachment = rank == 0 ? Buffer::CopyOf({attached, attachment.size()}) : Buffer(),
              .samples = 1},
          plan, CollectiveRun::Options{.rank = rank, .slice_elements = slice_elements}));
      runs_.back()->Begin();
    }
  }

  // What `from` has to say now, as messages to `to`; it says nothing to others.
  std::vector<Message> Said(uint32_t from, uint32_t to) {
    std::vector<Message> messages;
    for (OutgoingSlice& outgoing : runs_[from]->TakeOutgoing()) {
      EXPECT_EQ(outgoing.peer, to);
      Message& message = messages.emplace_back();
      *message.envelope.mutable_group_slice() = std::move(outgoing.slice);
      AddFrame(message, std::move(outgoing.frame), outgoing.checksum);
      if (!outgoing.attachment.bytes.empty()) {
        AddFrame(message, std::move(outgoing.attachment.bytes), outgoing.attachment.checksum);
      }
    }
    return messages;
  }
  absl::Status Hear(uint32_t to, const std::vector<Message>& messages) {
    absl::Status first;
    for (const Message& message : messages) first.Update(runs_[to]->Take(message));
    return first;
  }
  // One bit of an element that the member has got and not passed on yet.
  void Flip(uint32_t rank, size_t element) {
    uint32_t bits;
    std::memcpy(&bits, &data_[rank][element], sizeof(bits));
    bits ^= 1u << 20;
    std::memcpy(&data_[rank][element], &bits, sizeof(bits));
  }

  std::vector<std::vector<float>> data_;  // by rank
  std::vector<std::unique_ptr<CollectiveRun>> runs_;
};

TEST_F(RunsTest, ABitThatFlipsInAMemberThatPassesAResultOnIsNoticed) {
  Make(CollectiveKind::kBroadcast, 3, 10, 4);
  ASSERT_TRUE(Hear(1, Said(0, 1)).ok());
  ASSERT_EQ(data_[1], data_[0]);
  Flip(1, 7);
  const absl::Status heard = Hear(2, Said(1, 2));
  EXPECT_EQ(heard.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(heard.message()), HasSubstr("differs from its checksum"));
}

// Slices of two owners share a message on their way to a member that passes only one of them on.
TEST_F(RunsTest, SlicesThatShareAMessageKeepTheirOwnersChecksums) {
  for (const bool flips : {false, true}) {
    SCOPED_TRACE(flips);
    runs_.clear();
    Make(CollectiveKind::kAllGather, 4, 8, 8);
    ASSERT_TRUE(Hear(3, Said(2, 3)).ok());  // part 2
    ASSERT_TRUE(Hear(0, Said(3, 0)).ok());  // parts 2 and 3
    const std::vector<Message> to_1 = Said(0, 1);
    ASSERT_EQ(to_1.size(), 2u);  // part 0; parts 2 and 3
    ASSERT_EQ(to_1[1].envelope.group_slice().count(), 4u);
    ASSERT_TRUE(Hear(1, to_1).ok());
    if (flips) Flip(1, 6);
    const absl::Status heard = Hear(2, Said(1, 2));  // parts 0, 1 and 3
    EXPECT_EQ(heard.ok(), !flips) << heard;
    EXPECT_EQ(data_[2][6] == data_[3][6], !flips);
  }
}

TEST_F(RunsTest, WhatTheRootAttachesReachesAllMembersOnce) {
  Make(CollectiveKind::kBroadcast, 3, 10, 4, "attached");
  const std::vector<Message> to_1 = Said(0, 1);
  ASSERT_EQ(to_1.size(), 3u);
  EXPECT_EQ(to_1[0].frames.size(), 2u);
  EXPECT_EQ(to_1[1].frames.size(), 1u);
  ASSERT_TRUE(Hear(1, to_1).ok());
  ASSERT_TRUE(Hear(2, Said(1, 2)).ok());
  for (const auto& run : runs_) {
    ASSERT_TRUE(run->arrived());
    const Buffer attachment = run->result().attachment;
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(attachment.data()), attachment.size()),
              "attached");
  }
}

TEST_F(RunsTest, AnAttachmentThatChangesOnTheWayIsNoticed) {
  Make(CollectiveKind::kBroadcast, 2, 4, 4, "attached");
  Message bent = Said(0, 1).at(0);
  bent.frames[1] = Buffer::CopyOf(std::vector<uint8_t>(8));
  EXPECT_EQ(Hear(1, {bent}).code(), absl::StatusCode::kDataLoss);
}

TEST_F(RunsTest, AnAttachmentThatChangesInAMemberThatPassesItOnIsNoticed) {
  Make(CollectiveKind::kBroadcast, 3, 4, 4, "attached");
  ASSERT_TRUE(Hear(1, Said(0, 1)).ok());
  const_cast<uint8_t*>(runs_[1]->result().attachment.data())[3] ^= 1;
  EXPECT_EQ(Hear(2, Said(1, 2)).code(), absl::StatusCode::kDataLoss);
}

TEST_F(RunsTest, OnlyTheFirstSliceOfABroadcastMayHaveAnAttachment) {
  for (const auto kind : {CollectiveKind::kBroadcast, CollectiveKind::kAllGather}) {
    runs_.clear();
    Make(kind, 2, 8, 4);
    const size_t slice = kind == CollectiveKind::kBroadcast ? 1 : 0;
    Message more = Said(0, 1).at(slice);
    const Buffer second = Buffer::CopyOf(std::vector<uint8_t>(8));
    AddFrame(more, second, FrameChecksum(second));
    EXPECT_EQ(Hear(1, {more}).code(), absl::StatusCode::kInvalidArgument);
  }
}

// Member 0 adds the values of the others in the order of their ranks.
TEST_F(RunsTest, PiecesThatComeTooSoonKeepNoLentMemory) {
  const auto star =
      std::make_shared<const Plan>(PlanOptions{.algorithm = Algorithm::kDirect, .size = 4});
  data_.assign(4, {1, 1, 1, 1});
  for (uint32_t rank = 0; rank < 4; ++rank) {
    runs_.push_back(std::make_unique<CollectiveRun>(
        1,
        Collective{.id = {.stream = 0, .sequence = 1},
                   .kind = CollectiveKind::kReduceScatter,
                   .data = data_[rank],
                   .parts = {{.first = 0, .count = 4}, {}, {}, {}},
                   .samples = 1},
        star, CollectiveRun::Options{.rank = rank, .slice_elements = 4}));
    runs_.back()->Begin();
  }
  FrameLender lender;
  for (const uint32_t from : {3, 2, 1}) {
    const std::vector<Message> said = Said(from, 0);
    ASSERT_EQ(said.size(), 1u);
    ASSERT_TRUE(runs_[0]->Take(lender.Lend(said[0])).ok());
    EXPECT_EQ(lender.out(), 0u);
    EXPECT_EQ(runs_[0]->waiting_bytes() > 0, from > 1);
  }
  EXPECT_TRUE(runs_[0]->arrived());
  EXPECT_EQ(data_[0], std::vector<float>(4, 4));
}

// The sum takes the place of the own values, which others have not read yet.
TEST_F(RunsTest, InOneShotOthersGetTheOwnValuesAlsoAfterTheSum) {
  const auto plan =
      std::make_shared<const Plan>(PlanOptions{.algorithm = Algorithm::kOneShot, .size = 2});
  data_ = {{1, 2}, {10, 20}};
  for (uint32_t rank = 0; rank < 2; ++rank) {
    runs_.push_back(std::make_unique<CollectiveRun>(
        1,
        Collective{.id = {.stream = 0, .sequence = 1},
                   .kind = CollectiveKind::kAllReduce,
                   .data = data_[rank],
                   .parts = EvenParts(2, 2),
                   .samples = 1},
        plan, CollectiveRun::Options{.rank = rank, .slice_elements = 2}));
    runs_.back()->Begin();
  }
  const std::vector<Message> to_1 = Said(0, 1);
  ASSERT_TRUE(Hear(0, Said(1, 0)).ok());
  EXPECT_TRUE(runs_[0]->arrived());
  EXPECT_EQ(data_[0], (std::vector<float>{11, 22}));
  ASSERT_TRUE(Hear(1, to_1).ok());
  EXPECT_TRUE(runs_[1]->arrived());
  EXPECT_EQ(data_[1], data_[0]);
  EXPECT_EQ(runs_[1]->result().samples, 2u);
}

TEST_F(RunsTest, SumsHaveChecksumsOfTheirOwn) {
  Make(CollectiveKind::kReduceScatter, 2, 2, 2);
  const std::vector<Message> to_0 = Said(1, 0);
  ASSERT_TRUE(Hear(0, to_0).ok());
  EXPECT_EQ(data_[0][0], 100);
  Message bent = Said(0, 1).at(0);
  bent.envelope.set_frame_checksums(0, bent.envelope.frame_checksums(0) ^ 1);
  EXPECT_EQ(Hear(1, {bent}).code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace covey::worker
