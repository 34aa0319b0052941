// SPDX-License-Identifier: Apache-2.0

// A group whose members change while it trains.

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/testing/hybrid_fixture.h"

namespace covey::worker {
namespace {

using ::testing::HasSubstr;

// Workers of which some are in the group. Each program goes from step to step on its own.
class ReformFleet {
 public:
  ReformFleet(uint32_t workers, std::vector<uint32_t> members, const HybridOptions& options,
              uint64_t seed, const Model& model = {})
      : ReformFleet(ViewOf(workers, members, 0, model), workers, options, seed, model) {}
  ReformFleet(const proto::ClusterView& view, uint32_t workers, const HybridOptions& options,
              uint64_t seed, const Model& model)
      : fleet(view,
              {.slice_bytes = 16,
               .rendezvous = RendezvousMode::kAgreed,
               .algorithm = Algorithm::kRing},
              model, options, seed),
        workers_(workers),
        waiting_(workers, 0),
        failures(workers) {
    fleet.PullAll();
  }

  static proto::ClusterView ViewOf(uint32_t workers, const std::vector<uint32_t>& members,
                                   uint64_t changes, const Model& model) {
    proto::ClusterView view = ViewWithTables(workers, model);
    view.set_epoch(2 + changes);
    proto::Group& group = *view.mutable_groups(0);
    group.set_generation(Ring::kGeneration + changes);
    group.clear_members();
    for (const uint32_t rank : members) group.add_members(Ring::kFirstNode + rank);
    return view;
  }

  // A new plan, of which nobody knows yet.
  void Plan(std::vector<uint32_t> members) {
    ++changes_;
    view_ = ViewOf(workers_, members, changes_, fleet.model);
  }
  void LetGoOnWith(uint32_t minimum_members) {
    view_.mutable_groups(0)->set_minimum_members(minimum_members);
    view_.mutable_groups(0)->set_grace_ms(100);
  }
  void Show(uint32_t rank) { fleet.ShowView(rank, view_); }

  bool Idle(uint32_t rank) const { return waiting_[rank] == 0; }
  void Begin(uint32_t rank) {
    fleet.hybrids[rank]->BeginStep(fleet.ring.now(), fleet.ring.outbox(rank));
  }
  void Submit(uint32_t rank, const std::vector<size_t>& tensors) {
    for (const size_t t : tensors) {
      std::fill(fleet.gradients[{rank, t}].begin(), fleet.gradients[{rank, t}].end(), -1.0f);
      fleet.hybrids[rank]->Submit(fleet.ring.now(),
                                  Watched(rank, fleet.RequestFor(rank, t, 1 + rank)),
                                  fleet.ring.outbox(rank));
    }
  }
  void Submit(uint32_t rank) {
    Begin(rank);
    Submit(rank, fleet.RandomOrder());
  }
  // One step of those who are in the group.
  void StepOf(const std::vector<uint32_t>& ranks) {
    for (const uint32_t rank : ranks) Submit(rank);
    fleet.Run();
  }
  // A worker that the new plan has begins, as a program does.
  void Join(uint32_t rank) {
    ASSERT_TRUE(fleet.ring.communicator(rank).ready());
    fleet.SetTables(rank);
    for (const size_t t : fleet.RandomOrder()) {
      fleet.hybrids[rank]->Pull(fleet.ring.now(), Watched(rank, fleet.RequestFor(rank, t, 0)),
                                fleet.ring.outbox(rank));
    }
    fleet.Run();
  }

  void ExpectEqualValues(const std::vector<uint32_t>& ranks) const {
    for (size_t t = 0; t < fleet.model.tables.size(); ++t) {
      for (const uint32_t rank : ranks) {
        EXPECT_TRUE(SameBits(fleet.values.at({rank, t}), fleet.values.at({ranks[0], t})))
            << "member " << rank << " tensor " << t;
      }
    }
  }

 private:
  TensorRequest Watched(uint32_t rank, TensorRequest request) {
    ++waiting_[rank];
    request.done = [this, rank](absl::Time, const absl::Status& status, Outbox&) {
      --waiting_[rank];
      failures[rank].Update(status);
    };
    return request;
  }

 public:
  Fleet fleet;

 private:
  const uint32_t workers_;
  uint64_t changes_ = 0;
  proto::ClusterView view_;
  std::vector<size_t> waiting_;

 public:
  std::vector<absl::Status> failures;  // the first of each program
};

class HybridReformTest : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Fused, HybridReformTest, testing::Bool());

TEST_P(HybridReformTest, AMemberThatHasNoPlaceAnyMoreIsToldAndTheOthersGoOn) {
  ReformFleet f(3, {0, 1, 2}, {.fusion = {.bucket_bytes = GetParam() ? 1u << 20 : 0u}}, 1);
  f.StepOf({0, 1, 2});
  f.Plan({0, 1});
  f.Show(0);
  f.Show(1);
  // One of them does not know yet: nothing changes.
  f.StepOf({0, 1, 2});
  EXPECT_EQ(f.fleet.ring.communicator(0).generation(), Ring::kGeneration);
  f.Show(2);
  f.StepOf({0, 1, 2});
  EXPECT_EQ(f.fleet.ring.communicator(0).generation(), Ring::kGeneration + 1);
  EXPECT_EQ(f.fleet.ring.communicator(0).size(), 2u);
  for (uint32_t rank = 0; rank < 3; ++rank) EXPECT_TRUE(f.failures[rank].ok());
  f.ExpectEqualValues({0, 1, 2});
  f.Submit(2);
  EXPECT_EQ(f.failures[2].code(), absl::StatusCode::kAborted);
  EXPECT_THAT(f.failures[2].message(), HasSubstr("after step 3"));
  f.StepOf({0, 1});
  f.StepOf({0, 1});
  EXPECT_EQ(f.fleet.hybrids[0]->step().value(), 5u);
  f.ExpectEqualValues({0, 1});
  EXPECT_TRUE(f.failures[0].ok() && f.failures[1].ok());
}

TEST_P(HybridReformTest, AWorkerThatJoinsGetsTheValuesAndTheGroupsStep) {
  ReformFleet f(3, {0, 1}, {.fusion = {.bucket_bytes = GetParam() ? 1u << 20 : 0u}}, 2);
  f.StepOf({0, 1});
  f.StepOf({0, 1});
  f.Plan({0, 1, 2});
  for (uint32_t rank = 0; rank < 3; ++rank) f.Show(rank);
  f.StepOf({0, 1});
  f.Join(2);
  EXPECT_TRUE(f.Idle(2));
  EXPECT_EQ(f.fleet.hybrids[2]->step().value(), 3u);
  f.ExpectEqualValues({0, 1, 2});
  f.StepOf({0, 1, 2});
  f.StepOf({2, 1, 0});
  EXPECT_EQ(f.fleet.hybrids[2]->step().value(), 5u);
  f.ExpectEqualValues({0, 1, 2});
  for (uint32_t rank = 0; rank < 3; ++rank) EXPECT_TRUE(f.failures[rank].ok());
}

TEST_P(HybridReformTest, WhatIsSubmittedMeanwhileCountsInTheNewGeneration) {
  ReformFleet f(3, {0, 1}, {.fusion = {.bucket_bytes = GetParam() ? 1u << 20 : 0u}}, 3);
  f.Plan({0, 1, 2});
  f.Show(0);
  f.Show(1);
  f.StepOf({0, 1});
  // The new one has not heard of it yet, so the group is not ready.
  f.StepOf({0, 1});
  EXPECT_FALSE(f.Idle(0));
  f.Show(2);
  f.fleet.Run();
  f.Join(2);
  EXPECT_FALSE(f.Idle(0));
  f.StepOf({2});
  for (uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_TRUE(f.Idle(rank));
    EXPECT_TRUE(f.failures[rank].ok()) << f.failures[rank];
    EXPECT_EQ(f.fleet.hybrids[rank]->step().value(), 2u);
  }
  f.ExpectEqualValues({0, 1, 2});
}

// Members that are in the last step with one tensor, and have submitted the next one of others.
class HybridCutTest : public testing::TestWithParam<uint64_t> {
 protected:
  static constexpr uint32_t kWorkers = 3;
  // `slow`: the tensor whose server does not answer in the last step.
  static void ChangeWithOneTensorSlow(uint64_t slow, uint64_t seed) {
    ReformFleet f(kWorkers, {0, 1, 2}, {.fusion = {.bucket_bytes = 0}}, seed);
    const size_t tensors = f.fleet.model.tables.size();
    std::vector<size_t> others;
    for (size_t t = 0; t < tensors; ++t) {
      if (t != slow) others.push_back(t);
    }
    f.StepOf({0, 1, 2});
    f.Plan({0, 2});
    for (uint32_t rank = 0; rank < kWorkers; ++rank) f.Show(rank);
    f.fleet.withheld_table = slow + 1;
    f.StepOf({0, 1, 2});
    for (uint32_t rank = 0; rank < kWorkers; ++rank) {
      f.Begin(rank);
      f.Submit(rank, others);
    }
    f.fleet.Run();
    // The last step is not over, and no tensor goes beyond it.
    EXPECT_EQ(f.fleet.ring.communicator(0).generation(), Ring::kGeneration);
    EXPECT_FALSE(f.Idle(0));
    f.fleet.withheld_table = 0;
    f.fleet.Run();
    EXPECT_EQ(f.fleet.ring.communicator(0).generation(), Ring::kGeneration + 1);
    EXPECT_TRUE(f.Idle(1));
    EXPECT_EQ(f.failures[1].code(), absl::StatusCode::kAborted);
    EXPECT_THAT(f.failures[1].message(), HasSubstr("after step 2"));
    for (const uint32_t rank : {0u, 2u}) f.Submit(rank, {slow});
    f.fleet.Run();
    for (const uint32_t rank : {0u, 2u}) {
      EXPECT_TRUE(f.Idle(rank));
      EXPECT_TRUE(f.failures[rank].ok()) << f.failures[rank];
      EXPECT_EQ(f.fleet.hybrids[rank]->step().value(), 3u);
    }
    // Two steps of three members and one of two, each once.
    EXPECT_EQ(f.fleet.server.samples, (2 * (1 + 2 + 3) + (1 + 3)) * f.fleet.model.shards());
    f.ExpectEqualValues({0, 2});
  }
};
INSTANTIATE_TEST_SUITE_P(Seeds, HybridCutTest, testing::Range<uint64_t>(1, 5));

TEST_P(HybridCutTest, NoTensorGoesOnBeforeTheFirstOneTellsWhetherToChange) {
  ChangeWithOneTensorSlow(0, GetParam());
}

TEST_P(HybridCutTest, NoTensorGoesOnAfterTheLastStep) {
  for (const uint64_t slow : {1, 2}) ChangeWithOneTensorSlow(slow, GetParam());
}

// Groups {0, 1} and {2, 3}, of which the second is ahead, become one.
class HybridMergeTest : public testing::TestWithParam<bool> {
 protected:
  HybridMergeTest()
      : f(ViewOfTwo(), 4, {.fusion = {.bucket_bytes = GetParam() ? 1u << 20 : 0u}}, 6, Shards()) {
    f.fleet.server.groups_merge = true;
    f.StepOf({0, 1, 2, 3});
    for (int step = 0; step < 4; ++step) f.StepOf({2, 3});
    f.Plan({0, 1, 2, 3});
    f.LetGoOnWith(2);
    // The first group changes over after step 2, and waits for the others.
    f.Show(0);
    f.Show(1);
    f.StepOf({0, 1});
  }
  // Each member has a part of each tensor.
  static Model Shards() {
    Model model;
    model.tables = {{5, 4, 7, 1}, {2, 3, 4, 5}, {3, 1, 2, 4}};
    return model;
  }
  static proto::ClusterView ViewOfTwo() {
    proto::ClusterView view = ReformFleet::ViewOf(4, {0, 1}, 0, Shards());
    proto::Group& second = *view.add_groups();
    second = view.groups(0);
    second.set_id(1);
    second.clear_members();
    for (const uint32_t rank : {2, 3}) second.add_members(Ring::kFirstNode + rank);
    return view;
  }
  // After step 6.
  void SecondGroupComes() {
    f.Show(2);
    f.Show(3);
    f.StepOf({2, 3});
    EXPECT_EQ(f.fleet.ring.communicator(0).size(), 4u);
    EXPECT_EQ(f.fleet.ring.communicator(0).agreed_step(), 6u);
  }
  void ExpectAllAfterStep(uint64_t step) {
    for (uint32_t rank = 0; rank < 4; ++rank) {
      EXPECT_TRUE(f.Idle(rank)) << rank;
      EXPECT_TRUE(f.failures[rank].ok()) << f.failures[rank];
      EXPECT_EQ(f.fleet.hybrids[rank]->step().value(), step) << rank;
      EXPECT_EQ(f.fleet.hybrids[rank]->steps_aside(), 0u);
    }
    f.ExpectEqualValues({0, 1, 2, 3});
    // Two steps of the first group, six of the second, the others of all: no gradient is dropped.
    const uint64_t samples = 2 * (1 + 2) + 6 * (3 + 4) + (step - 6) * (1 + 2 + 3 + 4);
    EXPECT_EQ(f.fleet.server.samples, samples * f.fleet.model.shards());
  }

  ReformFleet f;
};
INSTANTIATE_TEST_SUITE_P(Fused, HybridMergeTest, testing::Bool());

TEST_P(HybridMergeTest, WhatIsSubmittedMeanwhileIsForTheStepThatAllGoOnWith) {
  f.Submit(0);
  f.Submit(1);
  SecondGroupComes();
  EXPECT_FALSE(f.Idle(0));
  f.StepOf({2, 3});
  ExpectAllAfterStep(7);
  f.StepOf({0, 1, 2, 3});
  ExpectAllAfterStep(8);
}

TEST_P(HybridMergeTest, AStepMayBeSubmittedPartlyBeforeAndPartlyAfter) {
  f.Begin(0);
  f.Submit(0, {1});
  f.Begin(1);
  SecondGroupComes();
  f.Submit(0, {2, 0});
  f.Submit(1, {0, 1, 2});
  f.StepOf({2, 3});
  ExpectAllAfterStep(7);
}

TEST_P(HybridMergeTest, WhoHasBegunTheStepBeforeGivesWayOnlyToSureGradients) {
  for (const uint32_t rank : {0u, 1u}) {
    f.Begin(rank);
    f.Submit(rank, {1});
  }
  SecondGroupComes();
  for (const uint32_t rank : {2u, 3u}) {
    f.Begin(rank);
    f.Submit(rank, {2});
  }
  f.fleet.Run();
  f.fleet.ring.Pass(absl::Seconds(1));
  f.fleet.Run();
  for (uint32_t rank = 0; rank < 4; ++rank) f.Submit(rank, {0});
  for (const uint32_t rank : {0u, 1u}) f.Submit(rank, {2});
  for (const uint32_t rank : {2u, 3u}) f.Submit(rank, {1});
  f.fleet.Run();
  for (uint32_t rank = 0; rank < 4; ++rank) EXPECT_TRUE(f.Idle(rank)) << rank;
  // No member had given the first tensor, so it waited for all.
  const uint64_t samples = 2 * (1 + 2) + 6 * (3 + 4) + (1 + 2 + 3 + 4);
  EXPECT_EQ(f.fleet.server.samples_of_table[1], samples * f.fleet.model.tables[0].size());
}

TEST_P(HybridMergeTest, AProgramMayHaveBegunTheStepAfterTheOneThatItHasSubmitted) {
  f.Submit(0);
  f.Begin(0);
  f.Submit(1);
  SecondGroupComes();
  f.StepOf({2, 3});
  EXPECT_TRUE(f.Idle(0));
  f.Submit(0, {0, 1, 2});
  f.StepOf({1, 2, 3});
  ExpectAllAfterStep(8);
}

TEST_P(HybridReformTest, LocalTablesGoOnFromTheServersValues) {
  Model model;
  model.spec.mutable_inner_learning_rate()->set_base(0.5);
  model.spec.mutable_contract()->set_kind(proto::Contract::LOCAL);
  model.spec.mutable_contract()->set_local_steps(1);
  ReformFleet f(3, {0, 1, 2}, {.fusion = {.bucket_bytes = GetParam() ? 1u << 20 : 0u}}, 4, model);
  f.StepOf({0, 1, 2});
  f.Plan({1, 0});
  for (uint32_t rank = 0; rank < 3; ++rank) f.Show(rank);
  f.StepOf({0, 1, 2});
  f.StepOf({0, 1});
  EXPECT_EQ(f.fleet.ring.communicator(0).rank(), 1u);
  EXPECT_TRUE(f.failures[0].ok() && f.failures[1].ok());
  f.ExpectEqualValues({0, 1});
}

TEST_P(HybridReformTest, DistributedGroupsRefuseToChange) {
  ReformFleet f(2, {0, 1},
                {.synchronization = Synchronization::kDistributed,
                 .fusion = {.bucket_bytes = GetParam() ? 1u << 20 : 0u}},
                5);
  f.Plan({0});
  f.Show(0);
  f.Show(1);
  f.StepOf({0, 1});
  f.StepOf({0, 1});
  EXPECT_THAT(f.failures[0].message(), HasSubstr("distributed synchronization keeps"));
  EXPECT_THAT(f.failures[1].message(), HasSubstr("distributed synchronization keeps"));
  EXPECT_TRUE(f.Idle(0) && f.Idle(1));
}

TEST_P(HybridReformTest, RandomChangesLoseNoStepAndRepeatNone) {
  // The server's checks are the test: each shard hears of each step once, in order.
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    constexpr uint32_t kWorkers = 5;
    Random random(seed);
    ReformFleet f(kWorkers, {0, 1, 2},
                  {.lag = static_cast<uint32_t>(seed % 2),
                   .fusion = {.bucket_bytes = GetParam() ? 1u << 20 : 0u}},
                  seed);
    std::vector<uint32_t> members = {0, 1, 2};
    for (int change = 0; change < 6; ++change) {
      // Worker 0 stays; the others come and go.
      std::vector<uint32_t> next = {0};
      for (uint32_t rank = 1; rank < kWorkers; ++rank) {
        if (random.Chance(0.6)) next.push_back(rank);
      }
      if (next == members) continue;
      f.Plan(next);
      std::vector<uint32_t> unaware;
      for (uint32_t rank = 0; rank < kWorkers; ++rank) unaware.push_back(rank);
      const uint64_t generation = f.fleet.ring.communicator(0).generation();
      for (int round = 0; f.fleet.ring.communicator(0).generation() == generation; ++round) {
        ASSERT_LT(round, 40);
        if (!unaware.empty()) {
          const size_t chosen = random.Below(unaware.size());
          f.Show(unaware[chosen]);
          unaware.erase(unaware.begin() + static_cast<ptrdiff_t>(chosen));
        }
        if (std::all_of(members.begin(), members.end(),
                        [&](uint32_t rank) { return f.Idle(rank); })) {
          f.StepOf(members);
        }
        f.fleet.Run();
      }
      for (const uint32_t rank : unaware) f.Show(rank);
      f.fleet.Run();
      for (const uint32_t rank : next) {
        ASSERT_TRUE(f.fleet.ring.communicator(rank).ready()) << rank;
        const bool old = std::find(members.begin(), members.end(), rank) != members.end();
        if (!old) f.Join(rank);
      }
      members = next;
      // What old members submitted meanwhile is a step of the new generation, for all.
      const bool waiting =
          std::any_of(members.begin(), members.end(), [&](uint32_t rank) { return !f.Idle(rank); });
      for (const uint32_t rank : members) {
        if (waiting && f.Idle(rank)) f.Submit(rank);
      }
      f.fleet.Run();
      for (int step = 0; step < 3; ++step) {
        for (const uint32_t rank : members) {
          ASSERT_TRUE(f.Idle(rank)) << "worker " << rank << " in seed " << seed;
        }
        f.StepOf(members);
      }
      f.ExpectEqualValues(members);
      for (const uint32_t rank : members) {
        ASSERT_TRUE(f.failures[rank].ok()) << f.failures[rank];
        EXPECT_EQ(f.fleet.hybrids[rank]->step(), f.fleet.hybrids[0]->step());
      }
      for (auto& failure : f.failures) failure = absl::OkStatus();
    }
  }
}

}  // namespace
}  // namespace covey::worker
