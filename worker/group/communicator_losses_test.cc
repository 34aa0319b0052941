// SPDX-License-Identifier: Apache-2.0

// Groups whose members lose messages of each other, or get them damaged.

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/testing/recovery_fixture.h"

namespace covey::worker {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Until all programs have what they wait for, or have given up.
void RunInTime(GroupWithLosses& f) {
  for (int i = 0; i < 300; ++i) {
    f.fleet.Run();
    bool idle = true;
    for (const uint32_t rank : f.members()) {
      const Communicator& group = f.fleet.ring.communicator(rank);
      // With lag a program has what it waits for before the step is over.
      idle = idle && f.Idle(rank) && group.ready() && group.collectives() == 0;
    }
    if (idle) return;
    f.fleet.ring.Pass(absl::Milliseconds(100));
  }
}

void Damage(Message& message) {
  message.frames[0] = Buffer::CopyOf(message.frames[0].bytes());
  message.frames[0].MutableData()[0] ^= 0x10;
}

uint64_t LossesOf(GroupWithLosses& f) {
  uint64_t losses = 0;
  for (const uint32_t rank : f.members()) losses += f.fleet.ring.communicator(rank).losses();
  return losses;
}

// `what` happens to the message of this number of the second step. False: there are fewer.
bool LetOneMessage(GroupWithLosses& f, uint64_t number, const std::function<bool(Message&)>& what) {
  f.Step();
  uint64_t messages = 0;
  f.fleet.ring.SetTamper(
      [&](uint32_t, uint32_t, Message& message) { return messages++ != number || what(message); });
  f.Begin();
  RunInTime(f);
  f.CheckAllWell(2);
  f.CheckUpdates(2);
  f.Begin();
  RunInTime(f);
  f.CheckAllWell(3);
  f.CheckUpdates(3);
  return messages > number;
}

class GroupLossesTest : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Cases, GroupLossesTest,
                         testing::Values(Case{}, Case{.fused = true}, Case{.lag = 1},
                                         Case{.algorithm = Algorithm::kDirect},
                                         Case{.algorithm = Algorithm::kTree},
                                         Case{.algorithm = Algorithm::kHalvingDoubling},
                                         Case{.algorithm = Algorithm::kHierarchical}));

TEST_P(GroupLossesTest, AnyMessageOfAStepMayBeLost) {
  uint64_t losses = 0;
  for (uint64_t number = 0;; number += 2) {
    GroupWithLosses f(3, GetParam().OptionsOf(1 + number));
    const bool lost = LetOneMessage(f, number, [](Message&) { return false; });
    ASSERT_THAT(f.violations, IsEmpty()) << "message " << number;
    losses += LossesOf(f);
    if (!lost) break;
  }
  EXPECT_GT(losses, 0u);
}

TEST_P(GroupLossesTest, AnySliceMayBeDamaged) {
  uint64_t losses = 0;
  for (uint64_t number = 0;; number += 3) {
    GroupWithLosses f(3, GetParam().OptionsOf(1 + number));
    const bool damaged = LetOneMessage(f, number, [](Message& message) {
      if (!message.frames.empty()) Damage(message);
      return true;
    });
    ASSERT_THAT(f.violations, IsEmpty()) << "message " << number;
    losses += LossesOf(f);
    if (!damaged) break;
  }
  EXPECT_GT(losses, 0u);
}

TEST_P(GroupLossesTest, APartitionThatHealsCostsNoStep) {
  for (uint64_t messages = 0; messages < 60; messages += 4) {
    GroupWithLosses f(3, GetParam().OptionsOf(1 + messages));
    f.Step();
    f.Begin();
    f.fleet.RunMessages(messages);
    const absl::Time healed = f.fleet.ring.now() + absl::Milliseconds(1500);
    f.fleet.ring.SetTamper([&](uint32_t from, uint32_t to, Message&) {
      return f.fleet.ring.now() >= healed || (from != 1 && to != 1);
    });
    RunInTime(f);
    f.CheckAllWell(2);
    f.CheckUpdates(2);
    f.Begin();
    RunInTime(f);
    f.CheckAllWell(3);
    f.CheckUpdates(3);
    ASSERT_THAT(f.violations, IsEmpty()) << "after " << messages << " messages";
  }
}

// Those of the meetings too.
TEST_P(GroupLossesTest, ManyMessagesMayBeLost) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    GroupWithLosses f(4, GetParam().OptionsOf(seed));
    f.fleet.ring.SetTamper([&](uint32_t, uint32_t, Message& message) {
      if (!message.frames.empty() && random.Chance(0.003)) Damage(message);
      return !random.Chance(0.007);
    });
    for (uint64_t step = 1; step <= 5; ++step) {
      f.Begin();
      RunInTime(f);
      f.CheckAllWell(step);
      f.CheckUpdates(step);
      ASSERT_THAT(f.violations, IsEmpty()) << "seed " << seed << " step " << step;
    }
  }
}

TEST_P(GroupLossesTest, AMemberDiesWhileMessagesAreLost) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Random random(seed);
    GroupWithLosses f(4, GetParam().OptionsOf(seed));
    f.Step();
    f.fleet.ring.SetTamper([&](uint32_t, uint32_t, Message&) { return !random.Chance(0.01); });
    f.Begin();
    f.fleet.RunMessages(random.Below(150));
    f.fleet.ring.Pass(absl::Milliseconds(600));
    f.fleet.RunMessages(random.Below(50));
    f.Kill(static_cast<uint32_t>(random.Below(4)));
    f.PlanWithoutTheDead();
    for (const uint32_t rank : f.members()) {
      f.Show(rank);
      f.fleet.RunMessages(random.Below(20));
    }
    RunInTime(f);
    f.CheckAllWell(2);
    f.CheckUpdates(2);
    f.Begin();
    RunInTime(f);
    f.CheckAllWell(3);
    f.CheckUpdates(3);
    ASSERT_THAT(f.violations, IsEmpty()) << "seed " << seed;
  }
}

TEST_P(GroupLossesTest, AChangeOfPlanGoesThroughWhileMessagesAreLost) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Random random(seed);
    GroupWithLosses f(4, GetParam().OptionsOf(seed));
    f.Step();
    f.fleet.ring.SetTamper([&](uint32_t, uint32_t, Message&) { return !random.Chance(0.01); });
    f.Drain(3);
    f.Plan({0, 1, 2}, false);
    for (uint32_t rank = 0; rank < 4; ++rank) {
      f.Show(rank);
      f.Begin(rank);
      f.fleet.RunMessages(random.Below(60));
    }
    RunInTime(f);
    for (uint64_t step = 3; step <= 4; ++step) {
      f.CheckAllWell(step - 1);
      f.Begin();
      RunInTime(f);
      f.CheckAllWell(step);
      ASSERT_THAT(f.violations, IsEmpty()) << "seed " << seed;
    }
  }
}

TEST(GroupLossesOneTest, ALocalRoundGoesOn) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Random random(seed);
    LocalGroupWithLosses f(3, 0, seed % 2 == 0, seed);
    f.fleet.ring.SetTamper([&](uint32_t, uint32_t, Message&) { return !random.Chance(0.01); });
    const float lesson = f.Lesson({0, 1, 2});
    for (uint64_t step = 1; step <= 2 * LocalGroupWithLosses::kSteps; ++step) {
      f.Begin();
      RunInTime(f);
      f.CheckAllWell(step);
      f.CheckLearned(static_cast<float>(step) * lesson, static_cast<float>(step) * lesson);
      ASSERT_THAT(f.violations, IsEmpty()) << "seed " << seed << " step " << step;
    }
    f.CheckUpdates(2);
    ASSERT_THAT(f.violations, IsEmpty()) << "seed " << seed;
  }
}

TEST(GroupLossesOneTest, WhoIsOnlyLateIsWaitedFor) {
  GroupWithLosses f(3, Case{}.OptionsOf(1));
  f.Step();
  for (const uint32_t rank : {0u, 1u}) f.Begin(rank);
  for (int i = 0; i < 100; ++i) {
    f.fleet.Run();
    f.fleet.ring.Pass(absl::Milliseconds(100));
  }
  f.Begin(2);
  RunInTime(f);
  f.CheckAllWell(2);
  EXPECT_EQ(LossesOf(f), 0u);
  EXPECT_THAT(f.violations, IsEmpty());
}

TEST(GroupLossesOneTest, DistributedGroupsSayAtOnceWhatToDo) {
  GroupWithLosses::Options options = Case{}.OptionsOf(1);
  options.hybrid.synchronization = Synchronization::kDistributed;
  GroupWithLosses f(3, options);
  f.Begin();
  f.fleet.RunMessages(5);
  uint64_t messages = 0;
  f.fleet.ring.SetTamper([&](uint32_t, uint32_t, Message&) { return messages++ != 3; });
  const absl::Time lost = f.fleet.ring.now();
  RunInTime(f);
  EXPECT_LT(f.fleet.ring.now() - lost, absl::Seconds(2));
  bool told = false;
  for (const uint32_t rank : f.members()) {
    EXPECT_TRUE(f.Idle(rank));
    EXPECT_FALSE(f.failures[rank].ok());
    EXPECT_THAT(f.failures[rank].message(), HasSubstr("Synchronization::kCentralized"));
    told = told || absl::IsFailedPrecondition(f.failures[rank]);
  }
  EXPECT_TRUE(told);
}

// Members of a group that use collectives and nothing else.
class PlainLossTest : public testing::TestWithParam<Algorithm> {
 protected:
  PlainLossTest() : ring_(3, 16, 1) {}

  void Start(uint32_t rank) {
    data_[rank].assign(12, static_cast<float>(1 + rank));
    outcomes_[rank].reset();
    Communicator& machine = ring_.communicator(rank);
    machine.Start(ring_.now(),
                  {.id = machine.NextPlain(),
                   .kind = CollectiveKind::kAllReduce,
                   .data = data_[rank],
                   .parts = EvenParts(12, 3),
                   .deadline = ring_.now() + absl::Seconds(30),
                   .algorithm = GetParam(),
                   .done = [this, rank](absl::Time, const CollectiveResult& result,
                                        Outbox&) { outcomes_[rank] = result.status; }},
                  ring_.outbox(rank));
  }
  void RunInTime(absl::Duration time) {
    for (const absl::Time end = ring_.now() + time; ring_.now() < end;) {
      ring_.Run();
      ring_.Pass(absl::Milliseconds(100));
    }
  }

  Ring ring_;
  std::vector<float> data_[3];
  std::optional<absl::Status> outcomes_[3];
};

INSTANTIATE_TEST_SUITE_P(Algorithms, PlainLossTest,
                         testing::Values(Algorithm::kRing, Algorithm::kOneShot));

TEST_P(PlainLossTest, ACollectiveEndsSoonAndCanBeStartedAgain) {
  for (uint64_t number = 0; number < 12; ++number) {
    uint64_t messages = 0;
    ring_.SetTamper([&](uint32_t, uint32_t, Message&) { return messages++ != number; });
    for (uint32_t rank = 0; rank < 3; ++rank) Start(rank);
    RunInTime(absl::Seconds(3));
    EXPECT_GT(messages, number);
    bool lost = false;
    for (uint32_t rank = 0; rank < 3; ++rank) {
      ASSERT_TRUE(outcomes_[rank]) << "message " << number << " at " << rank;
      ASSERT_TRUE(ring_.communicator(rank).failure().ok()) << ring_.communicator(rank).failure();
      ASSERT_TRUE(ring_.communicator(rank).ready());
      if (outcomes_[rank]->ok()) continue;
      lost = true;
      EXPECT_EQ(outcomes_[rank]->code(), absl::StatusCode::kUnavailable);
      EXPECT_THAT(outcomes_[rank]->message(), HasSubstr("were lost"));
      EXPECT_THAT(outcomes_[rank]->message(), HasSubstr("call Group::Refresh"));
    }
    EXPECT_TRUE(lost);
    ring_.SetTamper(nullptr);
    for (uint32_t rank = 0; rank < 3; ++rank) Start(rank);
    ring_.Run();
    for (uint32_t rank = 0; rank < 3; ++rank) {
      ASSERT_TRUE(outcomes_[rank] && outcomes_[rank]->ok()) << number;
      EXPECT_EQ(data_[rank], std::vector<float>(12, 6));
    }
  }
}

TEST_P(PlainLossTest, AGroupWithAMemberThatHasLeftIsOver) {
  proto::ClusterView view = Ring::ActiveView(3);
  view.set_epoch(2);
  for (uint32_t rank = 0; rank < 3; ++rank) Start(rank);
  ring_.SetTamper([](uint32_t, uint32_t to, Message&) { return to != 1; });
  ring_.Run();
  view.mutable_nodes(2)->set_state(proto::Node::LEFT);
  ring_.SetTamper(nullptr);
  ring_.SetView(view);
  RunInTime(absl::Seconds(3));
  ASSERT_TRUE(outcomes_[1]);
  EXPECT_EQ(outcomes_[1]->code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(outcomes_[1]->message(), HasSubstr("worker-2 has left meanwhile"));
}

}  // namespace
}  // namespace covey::worker
