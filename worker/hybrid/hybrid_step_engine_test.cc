// SPDX-License-Identifier: Apache-2.0
#include "worker/hybrid/hybrid_step_engine.h"

#include <malloc.h>

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/testing/hybrid_fixture.h"

namespace covey::worker {
namespace {

using ::testing::HasSubstr;

constexpr FusionLimits kUnfused{.bucket_bytes = 0};

// Unequal, and some have none.
std::vector<uint64_t> SamplesOf(uint32_t members, uint64_t step) {
  std::vector<uint64_t> samples;
  for (uint32_t rank = 0; rank < members; ++rank) samples.push_back((rank + step) % 3 * 7);
  return samples;
}

uint64_t Sum(const std::vector<uint64_t>& samples) {
  uint64_t sum = 0;
  for (const uint64_t s : samples) sum += s;
  return sum;
}

// Random steps of a fleet and of one process; afterwards every member has the same bits as the
// latter.
void ExpectEqualsOneProcess(Fleet& fleet, const FusionLimits& fusion, uint64_t steps,
                            bool changes_rates = false) {
  const uint32_t members = fleet.ring.size();
  Random random(members);
  OneProcess reference(fleet.model, members, fusion);
  fleet.PullAll();
  uint64_t samples_of_all = 0;
  for (uint64_t step = 1; step <= steps; ++step) {
    const std::vector<uint64_t> samples = SamplesOf(members, step);
    for (double& factor : fleet.rate_factors) {
      if (changes_rates) factor = random.Uniform();
    }
    std::map<size_t, std::vector<std::vector<float>>> gradients;
    fleet.Step(samples, [&](uint32_t, size_t tensor, std::vector<float>& gradient) {
      for (float& g : gradient) g = static_cast<float>(random.Uniform() - 0.5);
      gradients[tensor].push_back(gradient);
    });
    for (auto& [tensor, of_members] : gradients) {
      reference.Apply(tensor, std::move(of_members), samples, fleet.rate_factors[tensor]);
    }
    ASSERT_TRUE(fleet.AllOk());
    for (const auto& hybrid : fleet.hybrids) EXPECT_EQ(hybrid->finished(), Step(step));
    samples_of_all += Sum(samples) * fleet.model.shards();
  }
  EXPECT_EQ(fleet.outcomes.size(), (steps + 1) * members * fleet.model.tables.size());
  for (const auto& [key, values] : fleet.values) {
    EXPECT_TRUE(SameBits(values, reference.values(key.second))) << "tensor " << key.second;
  }
  if (fleet.server.push_bytes > 0) {
    EXPECT_EQ(fleet.server.samples, samples_of_all);
  }
}

class HybridStepEngineTest : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Members, HybridStepEngineTest, testing::Range(1u, 10u));

TEST_P(HybridStepEngineTest, AStepIsFinishedWhenItIsOverForAllTensors) {
  Fleet fleet(GetParam(), {}, {.fusion = kUnfused});
  EXPECT_EQ(fleet.hybrids[0]->finished(), Step());
  for (uint32_t rank = 0; rank < GetParam(); ++rank) {
    fleet.hybrids[rank]->BeginStep(fleet.ring.now(), fleet.ring.outbox(rank));
  }
  for (size_t tensor = 0; tensor < fleet.model.tables.size(); ++tensor) {
    EXPECT_EQ(fleet.hybrids[0]->finished(), Step()) << "before tensor " << tensor;
    for (uint32_t rank = 0; rank < GetParam(); ++rank) fleet.Submit(rank, tensor, 1);
    fleet.Run();
  }
  EXPECT_EQ(fleet.hybrids[0]->finished(), Step(1));
}

TEST_P(HybridStepEngineTest, PullGivesEverybodyTheServersValues) {
  Fleet fleet(GetParam());
  fleet.PullAll();
  ASSERT_EQ(fleet.outcomes.size(), GetParam() * fleet.model.tables.size());
  ASSERT_TRUE(fleet.AllOk());
  for (const auto& [key, values] : fleet.values) {
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(values[i], Model::FirstValue(key.second, i));
    }
  }
  // Each shard was asked for once.
  EXPECT_EQ(fleet.server.pulls, fleet.model.shards());
}

TEST_P(HybridStepEngineTest, StepsEqualOneProcessBitForBitInAnyOrderOfTensors) {
  Fleet fleet(GetParam(), {}, {.fusion = kUnfused}, GetParam());
  ExpectEqualsOneProcess(fleet, kUnfused, 4);
}

TEST_P(HybridStepEngineTest, FusedStepsEqualOneProcessBitForBit) {
  Fleet fleet(GetParam(), {}, {}, GetParam());
  ExpectEqualsOneProcess(fleet, {}, 4);
}

TEST_P(HybridStepEngineTest, DistributedStepsHaveTheSameBitsWithoutAServer) {
  Fleet fleet(GetParam(), {}, {.synchronization = Synchronization::kDistributed}, GetParam());
  ExpectEqualsOneProcess(fleet, {}, 4);
  EXPECT_EQ(fleet.server.push_bytes, 0u);
}

size_t HeapBytes() {
  const struct mallinfo2 heap = mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

// The heap of a group that has made a step, with a model of a million elements in eight shards.
size_t HeapBytesOf(uint32_t members, Synchronization synchronization) {
  const size_t before = HeapBytes();
  Model model;
  model.tables = {std::vector<uint64_t>(8, 1 << 17)};
  Fleet fleet(members, model, {.synchronization = synchronization}, 1, 1 << 20);
  fleet.PullAll();
  fleet.Step(std::vector<uint64_t>(members, 1),
             [](uint32_t, size_t, std::vector<float>& gradient) { gradient[0] = 1; });
  EXPECT_TRUE(fleet.AllOk());
  return HeapBytes() - before;
}

// Members that run the optimizer hold values and velocity besides what members hold who do not.
TEST(HybridStepEngineOneTest, MembersHoldOneStateTogether) {
  const double one_state = 2 * 4 * (1 << 20);
  for (const uint32_t members : {1u, 2u, 4u, 8u}) {
    const double held = static_cast<double>(HeapBytesOf(members, Synchronization::kDistributed)) -
                        static_cast<double>(HeapBytesOf(members, Synchronization::kCentralized));
    // Exactly one state; a sanitizer's heap is not counted.
    EXPECT_LT(held, 1.01 * one_state) << members << " members";
  }
}

TEST(HybridStepEngineOneTest, FusionTakesAnOrderOfMagnitudeFewerMessages) {
  Model model;
  model.tables.assign(1000, {1024});  // 4 KB each
  uint64_t messages[2];
  for (const bool fused : {false, true}) {
    Fleet fleet(4, model, {.fusion = {.bucket_bytes = fused ? 1u << 20 : 0u}}, 1, 1 << 20);
    ExpectEqualsOneProcess(fleet, {.bucket_bytes = fused ? 1u << 20 : 0u}, 1);
    messages[fused] = fleet.group_messages;
  }
  EXPECT_LT(messages[true] * 20, messages[false]);
}

TEST_P(HybridStepEngineTest, EachTensorHasItsRateFactor) {
  for (const Synchronization mode :
       {Synchronization::kCentralized, Synchronization::kDistributed}) {
    for (const FusionLimits& fusion : {FusionLimits(), kUnfused}) {
      Fleet fleet(GetParam(), {}, {.synchronization = mode, .fusion = fusion});
      ExpectEqualsOneProcess(fleet, fusion, 4, /*changes_rates=*/true);
    }
  }
}

TEST(HybridStepEngineOneTest, RefreshGivesTheNewestValuesInEveryMode) {
  for (const auto synchronization :
       {Synchronization::kCentralized, Synchronization::kDistributed}) {
    Fleet fleet(3, {}, {.synchronization = synchronization});
    fleet.PullAll();
    fleet.Step({1, 1, 1}, [](uint32_t, size_t, std::vector<float>& gradient) {
      std::fill(gradient.begin(), gradient.end(), 1);
    });
    const auto after_step = fleet.values;
    for (auto& [key, values] : fleet.values) std::fill(values.begin(), values.end(), -7);
    fleet.PullAll();
    ASSERT_TRUE(fleet.AllOk());
    EXPECT_EQ(fleet.values, after_step);
  }
}

TEST(HybridStepEngineOneTest, ReportsMeanStalenessSinceTheLastReport) {
  Fleet fleet(1);
  fleet.PullAll();
  fleet.Step({1}, [](uint32_t, size_t, std::vector<float>&) {});
  EXPECT_EQ(fleet.hybrids[0]->TakeStaleness(), 3.0);
  EXPECT_EQ(fleet.hybrids[0]->TakeStaleness(), 0.0);
}

TEST(HybridStepEngineOneTest, ARefusedPushFailsTheStepOfEveryMember) {
  Fleet fleet(3, {}, {.fusion = kUnfused});
  fleet.PullAll();
  fleet.outcomes.clear();
  fleet.server.refuse_table = 1;
  for (uint32_t rank = 0; rank < 3; ++rank) {
    fleet.hybrids[rank]->BeginStep(fleet.ring.now(), fleet.ring.outbox(rank));
    fleet.Submit(rank, 0, 4);
  }
  fleet.Run();
  ASSERT_EQ(fleet.outcomes.size(), 3u);
  for (const absl::Status& status : fleet.outcomes) {
    EXPECT_THAT(status.message(), HasSubstr("NaN in the gradient of shard 0"));
  }
}

TEST(HybridStepEngineOneTest, ANaNFailsADistributedStepOfEveryMember) {
  Fleet fleet(3, {}, {.synchronization = Synchronization::kDistributed});
  fleet.PullAll();
  fleet.outcomes.clear();
  fleet.Step({1, 1, 1}, [](uint32_t rank, size_t, std::vector<float>& gradient) {
    if (rank == 1) gradient[0] = std::numeric_limits<float>::quiet_NaN();
  });
  ASSERT_EQ(fleet.outcomes.size(), 9u);
  for (const absl::Status& status : fleet.outcomes) {
    EXPECT_THAT(status.message(), HasSubstr("NaN or infinity"));
  }
}

TEST(HybridStepEngineOneTest, ADeadMemberEndsPushesAndCollectivesAlike) {
  Fleet fleet(2);
  fleet.PullAll();
  fleet.outcomes.clear();
  fleet.answering = false;
  fleet.Step({4, 4}, [](uint32_t, size_t, std::vector<float>&) {});
  ASSERT_TRUE(fleet.outcomes.empty());
  ASSERT_GT(fleet.clients[0]->operations(), 0u);
  proto::ClusterView view = ViewWithTables(2, fleet.model);
  view.set_epoch(3);
  view.mutable_groups(0)->set_state(proto::Group::BROKEN);
  view.mutable_groups(0)->set_reason("worker-1 dead: silent for 2.6 s");
  for (uint32_t rank = 0; rank < 2; ++rank) fleet.ShowView(rank, view);
  fleet.answering = true;
  fleet.Run();
  EXPECT_EQ(fleet.outcomes.size(), 2 * fleet.model.tables.size());
  for (const absl::Status& status : fleet.outcomes) {
    EXPECT_THAT(status.message(), HasSubstr("worker-1 dead"));
  }
  EXPECT_EQ(fleet.clients[0]->operations(), 0u);
}

// One member has nothing to receive but what it reduces itself.
TEST(HybridStepEngineTest, AnErrorNamesTheOtherMemberWhereOneOwnsAll) {
  for (const uint32_t rank : {0u, 1u}) {
    Model model;
    model.tables = {{1}};
    Fleet fleet(2, model);
    fleet.PullAll();
    fleet.outcomes.clear();
    fleet.hybrids[rank]->BeginStep(fleet.ring.now(), fleet.ring.outbox(rank));
    fleet.Submit(rank, 0, 1);
    fleet.Run();
    fleet.ring.Pass(kPatience);
    fleet.Run();
    ASSERT_FALSE(fleet.outcomes.empty());
    EXPECT_THAT(std::string(fleet.outcomes[0].message()),
                HasSubstr(absl::StrCat("nothing from worker-", 1 - rank)));
  }
}

// Two members; the second is away, and the first waits for it. The members' own patience after an
// absence is 60 s, and that of their requests kPatience.
class AwayMemberTest : public testing::Test {
 protected:
  AwayMemberTest() {
    fleet_.PullAll();
    fleet_.outcomes.clear();
  }
  void Begin(uint32_t rank) {
    fleet_.hybrids[rank]->BeginStep(fleet_.ring.now(), fleet_.ring.outbox(rank));
    for (size_t t = 0; t < fleet_.model.tables.size(); ++t) fleet_.Submit(rank, t, 1);
    fleet_.Run();
  }
  void Tell(std::vector<AwayWorker> away) {
    for (uint32_t rank = 0; rank < 2; ++rank) {
      fleet_.ring.communicator(rank).SetAway(fleet_.ring.now(), away);
    }
  }
  AwayWorker Second(absl::Duration left) const {
    return {.node = NodeId(Ring::kFirstNode + 1),
            .reason = "evaluation",
            .until = fleet_.ring.now() + left};
  }
  void Pass(absl::Duration time) {
    fleet_.ring.Pass(time);
    fleet_.Run();
  }

  Fleet fleet_{2};
};

TEST_F(AwayMemberTest, WithoutAWordTheDeadlineHolds) {
  Begin(0);
  Pass(kPatience);
  ASSERT_FALSE(fleet_.outcomes.empty());
  EXPECT_EQ(fleet_.outcomes[0].code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(AwayMemberTest, DeadlinesStretch) {
  Begin(0);
  Tell({Second(absl::Minutes(5))});
  Pass(absl::Minutes(4));
  EXPECT_TRUE(fleet_.outcomes.empty());
  // It comes back, and takes its time for the step.
  Tell({});
  Pass(absl::Seconds(50));
  EXPECT_TRUE(fleet_.outcomes.empty());
  Begin(1);
  EXPECT_EQ(fleet_.outcomes.size(), 2 * fleet_.model.tables.size());
  EXPECT_TRUE(fleet_.AllOk());
}

TEST_F(AwayMemberTest, AnErrorAfterItsTimeNamesItAndItsReason) {
  Begin(0);
  Tell({Second(absl::Minutes(5))});
  Pass(absl::Minutes(6) - absl::Seconds(1));
  EXPECT_TRUE(fleet_.outcomes.empty());
  Pass(absl::Seconds(1));
  ASSERT_FALSE(fleet_.outcomes.empty());
  EXPECT_EQ(fleet_.outcomes[0].code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(fleet_.outcomes[0].message()),
              HasSubstr("nothing from worker-1, which was away (evaluation)"));
}

TEST_F(AwayMemberTest, AMemberOfAnotherGroupStretchesNoWaitForTheOwn) {
  AwayWorker other = Second(absl::Minutes(5));
  other.node = NodeId(Ring::kFirstNode + 7);
  Begin(0);
  Tell({other});
  EXPECT_EQ(fleet_.ring.communicator(0).deadline_floor(), absl::InfinitePast());
  EXPECT_EQ(fleet_.ring.communicator(0).deadline_floor_of_all(),
            fleet_.ring.now() + absl::Minutes(6));
  Pass(kPatience);
  EXPECT_FALSE(fleet_.outcomes.empty());
}

TEST_F(AwayMemberTest, ItsDeathStretchesNothing) {
  Tell({Second(absl::Minutes(5))});
  EXPECT_GT(fleet_.ring.communicator(0).deadline_floor(), fleet_.ring.now());
  proto::ClusterView view = ViewWithTables(2, fleet_.model);
  view.set_epoch(3);
  view.mutable_nodes(1)->set_state(proto::Node::DEAD);
  proto::Group& group = *view.mutable_groups(0);
  group.set_generation(Ring::kGeneration + 1);
  group.set_recovery_generation(Ring::kGeneration + 1);
  group.mutable_members()->Truncate(1);
  fleet_.Kill(1);
  fleet_.ShowView(0, view);
  fleet_.Run();
  EXPECT_EQ(fleet_.ring.communicator(0).deadline_floor(), absl::InfinitePast());
  Begin(0);
  EXPECT_EQ(fleet_.outcomes.size(), fleet_.model.tables.size());
  EXPECT_TRUE(fleet_.AllOk());
}

}  // namespace
}  // namespace covey::worker
