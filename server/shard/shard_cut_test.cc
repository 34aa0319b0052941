// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/shard/cut_alignment.h"
#include "server/testing/shard_fixture.h"

namespace covey::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = Contract::Kind;

constexpr ShardId kShard{TableId(kTestTable), ShardIndex(0)};

// A shard of one element under SGD with rate 1: its value is minus the sum of all applied gradients
// of one sample.
class CutTest {
 public:
  CutTest(const Contract& contract, uint32_t groups) : job_(contract, groups, 1), driver_(job_) {
    // Opens the shard.
    driver_.Values();
  }

  void Order(uint64_t id, const std::map<uint32_t, uint64_t>& steps, bool passed = false) {
    proto::SnapshotOrder& order = *job_.view.mutable_snapshot();
    order.Clear();
    order.set_id(id);
    order.set_passed(passed);
    for (const auto& [group, step] : steps) {
      proto::CutStep& cut = *order.add_groups();
      cut.set_group(group);
      cut.set_step(step);
    }
    Publish();
  }
  void Withdraw() {
    job_.view.clear_snapshot();
    Publish();
  }
  void Publish() {
    job_.view.set_epoch(job_.view.epoch() + 1);
    driver_.AdoptView(job_);
    driver_.Sent();  // reports and requests to the store
  }

  // Pushes a gradient of this value. Its reply.
  proto::PushReply Push(uint32_t group, uint64_t step, float gradient) {
    return driver_.Ask(driver_.GroupPush(group, step, {gradient})).envelope.push_reply();
  }
  float Value() { return driver_.Values()[0]; }
  uint64_t last_cut() { return driver_.actor().FindReplica(kShard)->content()->last_cut(); }
  // Of the newest record.
  uint64_t index() { return driver_.actor().FindReplica(kShard)->content()->index(); }
  TestJob& job() { return job_; }
  ShardDriver& driver() { return driver_; }

 private:
  TestJob job_;
  ShardDriver driver_;
};

TEST(ShardCut, ComesAfterTheOrderedStepsAndBeforeLaterOnes) {
  CutTest test({.kind = Kind::kAsync}, 2);
  test.Push(1, 1, 1);
  test.Order(7, {{1, 2}, {2, 1}});
  test.Push(1, 2, 2);
  const proto::PushReply beyond = test.Push(1, 3, 100);
  EXPECT_FALSE(beyond.duplicate());
  EXPECT_EQ(beyond.applied_version(), 0u);
  EXPECT_EQ(test.Value(), -3);
  EXPECT_EQ(test.last_cut(), 0u);
  EXPECT_TRUE(test.Push(1, 3, 100).duplicate());

  test.Push(2, 1, 4);
  EXPECT_EQ(test.last_cut(), 7u);
  EXPECT_EQ(test.Value(), -107);
  test.Push(2, 2, 1000);
  EXPECT_EQ(test.Value(), -1107);
}

TEST(ShardCut, AppliesWhatABufferHolds) {
  CutTest test({.kind = Kind::kBuffered, .buffer = 10}, 2);
  test.Order(7, {{1, 1}, {2, 1}});
  test.Push(1, 1, 1);
  test.Push(1, 2, 100);
  EXPECT_EQ(test.Value(), 0);
  test.Push(2, 1, 3);
  EXPECT_EQ(test.last_cut(), 7u);
  EXPECT_EQ(test.Value(), -2);  // a mean of two
}

TEST(ShardCut, WaitsForAPushThatALaterOneHasOvertaken) {
  CutTest test({.kind = Kind::kAsync}, 1);
  test.Push(1, 1, 1);
  test.Order(7, {{1, 3}});
  test.Push(1, 3, 4);
  EXPECT_EQ(test.last_cut(), 0u);
  test.Push(1, 2, 2);
  EXPECT_EQ(test.last_cut(), 7u);
}

TEST(ShardCut, UnderBspNothingWaits) {
  CutTest test({.kind = Kind::kBsp}, 2);
  test.Order(7, {{1, 2}, {2, 2}});
  for (uint64_t step = 1; step <= 3; ++step) {
    EXPECT_EQ(test.last_cut(), step == 3 ? 7u : 0u);
    test.Push(1, step, 1);
    test.Push(2, step, 3);
    EXPECT_EQ(test.Value(), -2.0f * static_cast<float>(step));
  }
}

TEST(ShardCut, UnderLocalTheClockCountsRounds) {
  CutTest test({.kind = Kind::kLocal, .local_steps = 10, .quorum = 1}, 2);
  test.Order(7, {{1, 20}, {2, 20}});
  test.Push(1, 1, 1);
  test.Push(1, 2, 1);
  EXPECT_EQ(test.Value(), -2);
  test.Push(1, 3, 100);
  test.Push(2, 1, 4);
  EXPECT_EQ(test.Value(), -2);
  EXPECT_EQ(test.last_cut(), 0u);
  test.Push(2, 2, 6);
  EXPECT_EQ(test.last_cut(), 7u);
  EXPECT_EQ(test.Value(), -107);  // the late changes in one mean, then the held round
}

TEST(ShardCut, DoesNotWaitForGroupsThatNeverPush) {
  CutTest test({.kind = Kind::kAsync}, 2);
  test.Push(1, 1, 1);
  test.Order(7, {{1, 3}, {2, 3}});
  test.Push(1, 2, 1);
  test.Push(1, 3, 1);
  EXPECT_EQ(test.last_cut(), 0u);
  test.Order(7, {{1, 3}, {2, 3}}, /*passed=*/true);
  EXPECT_EQ(test.last_cut(), 7u);
}

TEST(ShardCut, DoesNotWaitForGroupsThatBeginAfterIt) {
  CutTest test({.kind = Kind::kAsync}, 2);
  test.Order(7, {{1, 1}, {2, 0}});
  test.Push(2, 1, 100);
  EXPECT_EQ(test.Value(), 0);
  test.Push(1, 1, 1);
  EXPECT_EQ(test.last_cut(), 7u);
  EXPECT_EQ(test.Value(), -101);
}

// The groups have passed their steps, and one of the pushes is here without the others of its step.
TEST(ShardCut, ComesAfterAStepThatStillWaitsForAGroup) {
  CutTest test({.kind = Kind::kBsp}, 2);
  test.Push(1, 1, 1);
  test.Order(7, {{1, 1}, {2, 1}}, /*passed=*/true);
  EXPECT_EQ(test.last_cut(), 0u);
  test.Push(2, 1, 3);
  EXPECT_EQ(test.Value(), -2);
  EXPECT_EQ(test.last_cut(), 7u);
}

TEST(ShardCut, IsMadeOnce) {
  CutTest test({.kind = Kind::kAsync}, 1);
  test.Order(7, {{1, 1}});
  test.Push(1, 1, 1);
  const uint64_t index = test.index();
  EXPECT_EQ(index, 2u);
  test.Publish();
  EXPECT_EQ(test.index(), index) << "the order is in the view until all servers have reported";
}

TEST(ShardCut, IsMadeAtOnceWithoutGroups) {
  CutTest test({.kind = Kind::kAsync}, 0);
  test.Order(7, {});
  EXPECT_EQ(test.last_cut(), 7u);
  test.Order(8, {});
  EXPECT_EQ(test.last_cut(), 8u);
}

TEST(ShardCut, AWithdrawnOrderHoldsNothing) {
  CutTest test({.kind = Kind::kAsync}, 2);
  test.Order(7, {{1, 1}, {2, 1}});
  test.Push(1, 2, 5);
  EXPECT_EQ(test.Value(), 0);
  test.Withdraw();
  EXPECT_EQ(test.Value(), -5);
  test.Push(1, 1, 1);
  test.Push(2, 1, 1);
  EXPECT_EQ(test.last_cut(), 0u);
  EXPECT_EQ(test.Value(), -7);
}

TEST(ShardCut, ComesTooLateAfterALaterPush) {
  CutTest test({.kind = Kind::kAsync}, 1);
  test.Push(1, 1, 1);
  test.Push(1, 2, 1);
  test.Order(7, {{1, 1}});
  EXPECT_EQ(test.Push(1, 3, 1).applied_version(), 3u);  // nothing waits
  EXPECT_EQ(test.last_cut(), 0u);
  test.Order(8, {{1, 4}});
  test.Push(1, 4, 1);
  EXPECT_EQ(test.last_cut(), 8u);
}

TEST(ShardCut, SaysOnceWhyItIsNotMade) {
  UpdateGate gate({.kind = Kind::kAsync});
  gate.Pass(GroupId(1), Step(2));
  proto::SnapshotOrder order;
  order.set_id(7);
  order.set_epoch(9);
  order.add_groups()->set_group(1);
  order.mutable_groups(0)->set_step(1);
  CutAlignment alignment;
  alignment.Begin(order, gate.contract(), gate);
  EXPECT_FALSE(alignment.is_aligning());
  EXPECT_EQ(alignment.epoch(), Epoch(9));
  EXPECT_THAT(alignment.TakeFailure().value_or(""), HasSubstr("group 1 had pushed step 2"));
  EXPECT_FALSE(alignment.TakeFailure());
}

TEST(ShardCut, IsGivenUpWhenPushesWaitTooLong) {
  CutTest test({.kind = Kind::kAsync}, 2);
  test.Order(7, {{1, 1}, {2, 1}});
  test.Push(1, 1, 1);
  test.Push(1, 2, 5);
  test.driver().Pass(CutAlignment::kHoldMax - absl::Milliseconds(1));
  test.driver().Wake();
  EXPECT_EQ(test.Value(), -1);
  test.driver().Pass(absl::Milliseconds(1));
  EXPECT_LE(test.driver().actor().NextWake(), test.driver().now());
  test.driver().Wake();
  EXPECT_EQ(test.Value(), -6);
  test.Push(2, 1, 1);
  EXPECT_EQ(test.last_cut(), 0u);
}

// After a restart of the job no request may come before the order; nothing else opens the shard.
TEST(ShardCut, IsMadeByAShardThatOpensAfterTheOrder) {
  TestJob job(Contract{.kind = Kind::kAsync}, /*groups=*/0, 1);
  job.view.mutable_snapshot()->set_id(5);
  ShardDriver driver(job);
  driver.Wake();
  ASSERT_NE(driver.actor().FindReplica(kShard)->content(), nullptr);
  EXPECT_EQ(driver.actor().FindReplica(kShard)->content()->last_cut(), 5u);
}

}  // namespace
}  // namespace covey::server
