// SPDX-License-Identifier: Apache-2.0

// The values that are valid for a step whose givers have moved.

#include "tests/sim/workloads/truth/staleness_truth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/net/frame_checksum.h"
#include "tests/sim/workloads/truth/given_gradients.h"

namespace covey::sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint64_t kSteps = 4;
constexpr GroupId kGroup(1);
constexpr TableId kTable(7);
constexpr NodeId kStays(20);
constexpr NodeId kMoves(21);
constexpr uint64_t kServer = 5;

GivenGradients::Place Place(uint64_t step) { return {kGroup, Step(step), kTable}; }

Message From(uint64_t node) {
  Message message;
  message.envelope.mutable_header()->set_node(node);
  message.set_to({NodeId(30), 0});
  return message;
}

// A part of the sum of `step`, which contains the gradient of the member that moves.
Message Slice(uint64_t step) {
  Message message = From(kMoves.value());
  proto::GroupSlice& slice = *message.envelope.mutable_group_slice();
  slice.mutable_round()->set_group(kGroup.value());
  slice.set_stream(1);
  slice.set_sequence(step);
  slice.set_phase(proto::GroupSlice::REDUCE);
  slice.set_samples(2);
  return message;
}

class StalenessTruthTest : public testing::Test {
 protected:
  StalenessTruthTest() : truth_(violations_, {.steps = kSteps, .given = &given_}) {
    Message view = From(kSchedulerNode.value());
    proto::ClusterView& content = *view.envelope.mutable_watch_view_reply()->mutable_view();
    content.set_epoch(1);
    content.add_groups()->set_id(kGroup.value());
    truth_.OnSend(absl::UnixEpoch(), view);
    for (const NodeId program : {kStays, kMoves}) given_.Give(program, Place(1));
  }

  // Step 1 of `kMoves` is step 2 now.
  void Move() { given_.MoveAway(kMoves, Place(1), Place(2)); }

  std::vector<std::string> Read(std::vector<float> values, uint64_t clock) {
    values.resize(kSteps);
    Message message = From(kServer);
    proto::PullReply& reply = *message.envelope.mutable_pull_reply();
    reply.set_table(kTable.value());
    proto::GroupClock& of_group = *reply.mutable_state()->add_clocks();
    of_group.set_group(kGroup.value());
    of_group.set_step(clock);
    message.frames.push_back(Buffer::CopyOf(
        std::span(reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(float))));
    SetFrameChecksums(message);
    truth_.OnSend(absl::UnixEpoch(), message);
    return violations_.found();
  }

  Violations violations_;
  GivenGradients given_;
  StalenessTruth truth_;
};

TEST_F(StalenessTruthTest, AStepIsInOnce) { EXPECT_THAT(Read({1}, 1), IsEmpty()); }

TEST_F(StalenessTruthTest, AStepIsNotInTwice) {
  EXPECT_THAT(Read({2}, 1), ElementsAre(HasSubstr("holds 2 in the element of step 1")));
}

TEST_F(StalenessTruthTest, WhatNobodySawMayHaveItsShareOfTheNextStep) {
  Move();
  given_.Give(kStays, Place(2));
  EXPECT_THAT(Read({1 + 2.0f / 3, 1.0f / 3}, 2), IsEmpty());
}

TEST_F(StalenessTruthTest, WhatNobodySawIsNotInTwiceEither) {
  Move();
  EXPECT_THAT(Read({2.5}, 1), ElementsAre(HasSubstr("holds 2.5")));
}

TEST_F(StalenessTruthTest, WhatOthersSawMayNotBeInTheNextStepToo) {
  given_.OnSend(absl::UnixEpoch(), Slice(1));
  Move();
  EXPECT_THAT(Read({1 + 2.0f / 3, 1.0f / 3}, 2), ElementsAre(HasSubstr("holds 1.66667")));
}

TEST_F(StalenessTruthTest, AStepThatNobodyCameToIsNotShared) {
  EXPECT_THAT(Read({1, 1.0f / 3}, 2), ElementsAre(HasSubstr("in the element of step 2")));
}

}  // namespace
}  // namespace covey::sim
