// SPDX-License-Identifier: Apache-2.0

// How groups form, agree, and change their members while they work.

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/testing/ring_fixture.h"

namespace covey::worker {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Communicator::Options kMeasured = {.rendezvous = RendezvousMode::kMeasured};
constexpr Communicator::Options kAgreed = {.rendezvous = RendezvousMode::kAgreed};

proto::ClusterView TwoRacks(uint32_t members) {
  proto::ClusterView view = Ring::ActiveView(members);
  for (proto::Node& node : *view.mutable_nodes()) {
    node.set_labels(absl::StrCat("z/r", node.rank() % 2, "/h", node.rank()));
  }
  return view;
}

// One message, which takes time; then the wakes that are due. False when there was none.
bool Move(Ring& ring) {
  ring.Pass(absl::Microseconds(20));
  const bool moved = ring.Step();
  for (uint32_t rank = 0; rank < ring.size(); ++rank) {
    if (ring.communicator(rank).NextWake() > ring.now()) continue;
    ring.communicator(rank).Wake(ring.now(), ring.outbox(rank));
  }
  return moved;
}

// Until nobody has said anything for a millisecond.
void RunInTime(Ring& ring) {
  for (int idle = 0; idle < 50;) idle = Move(ring) ? 0 : idle + 1;
}

TEST(MeetingTest, MembersMeasureAndAllKnowTheSame) {
  Ring ring(TwoRacks(5), kMeasured, 1);
  EXPECT_TRUE(ring.communicator(0).formed());
  EXPECT_FALSE(ring.communicator(0).ready());
  const absl::Time before = ring.now();
  // Labels say where the racks are: nobody measures distances.
  ring.SetHeard([](uint32_t, const Message& message) {
    EXPECT_FALSE(message.envelope.group_probe().has_distance());
  });
  RunInTime(ring);
  EXPECT_LT(ring.now() - before, absl::Milliseconds(50));
  const LinkCosts& costs = ring.communicator(0).link_costs();
  EXPECT_NE(costs.at(Level::kZone).latency_seconds, LinkCosts().at(Level::kZone).latency_seconds);
  for (uint32_t rank = 0; rank < 5; ++rank) {
    ASSERT_TRUE(ring.communicator(rank).ready());
    EXPECT_EQ(ring.communicator(rank).agreed_step(), 0u);
    for (size_t level = 0; level < kLevels; ++level) {
      const LinkCost& cost = ring.communicator(rank).link_costs().levels[level];
      EXPECT_EQ(cost.latency_seconds, costs.levels[level].latency_seconds);
      EXPECT_EQ(cost.bytes_per_second, costs.levels[level].bytes_per_second);
    }
  }
}

TEST(MeetingTest, WhatIsStartedBeforeWaitsAndThenRuns) {
  for (const auto& [size, labelled] : std::vector<std::pair<uint32_t, bool>>{
           {1, true}, {2, true}, {40, true}, {5, false}, {32, false}}) {
    const proto::ClusterView view = labelled ? TwoRacks(size) : Ring::ActiveView(size);
    proto::ClusterView nobody = Ring::ActiveView(size);
    nobody.clear_groups();
    Ring ring(nobody, kMeasured, size);
    std::vector<std::vector<float>> data(size, std::vector<float>(100, 1));
    size_t done = 0;
    for (uint32_t rank = 0; rank < size; ++rank) {
      // The last comes late; what the others say is kept.
      if (rank + 1 == size) RunInTime(ring);
      ring.SetView(rank, view);
      ring.communicator(rank).Start(
          ring.now(),
          {.id = {.stream = 7, .sequence = 3},
           .kind = CollectiveKind::kAllReduce,
           .data = data[rank],
           .parts = EvenParts(100, size),
           .held = true,
           .done = [&done](absl::Time, const CollectiveResult& result,
                           Outbox&) { done += result.status.ok() ? 1 : 0; }},
          ring.outbox(rank));
      ring.communicator(rank).Contribute(ring.now(), {.stream = 7, .sequence = 3},
                                         ring.outbox(rank));
      EXPECT_EQ(ring.communicator(rank).collectives() > 0,
                size > 1 || !ring.communicator(rank).ready());
    }
    RunInTime(ring);
    EXPECT_EQ(done, size);
    for (const auto& values : data) {
      EXPECT_EQ(values, std::vector<float>(100, static_cast<float>(size)));
    }
  }
}

TEST(MeetingTest, AMemberThatNeverComesIsNamed) {
  proto::ClusterView nobody = Ring::ActiveView(3);
  nobody.clear_groups();
  Ring ring(nobody, kMeasured, 1);
  for (const uint32_t rank : {0, 2}) ring.SetView(rank, TwoRacks(3));
  RunInTime(ring);
  // The probes' patience, then that of the agreement.
  for (const absl::Duration patience : {absl::Seconds(3), absl::Seconds(61)}) {
    ring.Pass(patience);
    RunInTime(ring);
  }
  EXPECT_FALSE(ring.communicator(0).ready());
  EXPECT_THAT(ring.communicator(0).failure().message(), HasSubstr("nothing from worker-1"));
  EXPECT_THAT(ring.communicator(2).failure().message(), HasSubstr("worker-1"));
}

// Members on hosts of their own, whose labels say no more, in racks; `rack_of` by rank.
class UnnamedRacks {
 public:
  static constexpr double kNear = 50e-6;

  // Between racks it takes `gap` times as long, and has a tenth of the bandwidth.
  UnnamedRacks(std::vector<int> rack_of, double gap)
      : rack_of_(std::move(rack_of)), gap_(gap), ring_(Nobody(), kMeasured, 1) {
    ring_.SetDelay([this](uint32_t from, uint32_t to, const Message& message) {
      const bool far = rack_of_[from] != rack_of_[to];
      if (lost_ && lost_(from, to, message)) return absl::InfiniteDuration();
      size_t bytes = 0;
      for (const Buffer& frame : message.frames) bytes += frame.size();
      const double jitter = 0.8 + 0.4 * random_.Uniform();
      return absl::Seconds(jitter * kNear * (far ? gap_ : 1) +
                           static_cast<double>(bytes) / (far && gap_ > 1 ? 1e8 : 1e9));
    });
  }

  void Lose(std::function<bool(uint32_t from, uint32_t to, const Message&)> lost) {
    lost_ = std::move(lost);
  }
  // Returns what it took.
  absl::Duration Form(absl::Duration patience = absl::Seconds(1)) {
    ring_.SetView(View());
    const absl::Time begin = ring_.now();
    const auto ready = [this] {
      for (uint32_t rank = 0; rank < size(); ++rank) {
        if (!ring_.communicator(rank).ready()) return false;
      }
      return true;
    };
    while (!ready() && ring_.StepInTime(begin + patience)) {
    }
    EXPECT_TRUE(ready());
    return ring_.now() - begin;
  }

  uint32_t size() const { return static_cast<uint32_t>(rack_of_.size()); }
  Communicator& communicator(uint32_t rank) { return ring_.communicator(rank); }
  std::vector<std::string> RacksOf(uint32_t rank) {
    std::vector<std::string> racks;
    for (const TopologyPath& path : communicator(rank).paths()) racks.push_back(path.rack());
    return racks;
  }
  Algorithm ForLargeData(uint32_t rank) {
    return communicator(rank).PlanFor(CollectiveKind::kAllReduce, 64 << 20)->algorithm();
  }

 private:
  proto::ClusterView View() const {
    proto::ClusterView view = Ring::ActiveView(size());
    view.set_epoch(2);
    for (proto::Node& node : *view.mutable_nodes()) {
      node.set_labels(absl::StrCat("//h", node.rank()));
    }
    return view;
  }
  proto::ClusterView Nobody() const {
    proto::ClusterView view = Ring::ActiveView(size());
    view.clear_groups();
    return view;
  }

  const std::vector<int> rack_of_;
  const double gap_;
  Random random_{7};
  std::function<bool(uint32_t, uint32_t, const Message&)> lost_;
  Ring ring_;
};

TEST(MeasuredRacksTest, ShuffledRacksAreFoundAndUsed) {
  for (const std::vector<int>& rack_of : std::vector<std::vector<int>>{
           {0, 1, 0, 1, 1, 0, 1, 0}, {0, 0, 1, 0, 1, 1, 1, 0}, {0, 1, 1, 1, 0, 0, 1, 1, 0, 1}}) {
    UnnamedRacks racks(rack_of, 10);
    EXPECT_LT(racks.Form(), absl::Milliseconds(50));
    std::vector<std::string> expected;
    for (const int rack : rack_of) expected.push_back(absl::StrCat("measured-", rack));
    for (uint32_t rank = 0; rank < racks.size(); ++rank) {
      EXPECT_EQ(racks.communicator(rank).measured_racks(), 2u);
      EXPECT_EQ(racks.RacksOf(rank), expected);
      EXPECT_EQ(racks.ForLargeData(rank), Algorithm::kHierarchical);
      const LinkCosts& costs = racks.communicator(rank).link_costs();
      EXPECT_GT(costs.at(Level::kRack).bytes_per_second,
                5 * costs.at(Level::kCluster).bytes_per_second);
      EXPECT_LT(costs.at(Level::kRack).uplink_bytes_per_second, 2e8);
    }
  }
}

TEST(MeasuredRacksTest, AFullGroupOfThirtyTwoIsMeasuredSoonEnough) {
  std::vector<int> rack_of(32);
  for (size_t rank = 0; rank < rack_of.size(); ++rank) rack_of[rank] = rank % 3 == 0 ? 0 : 1;
  UnnamedRacks racks(rack_of, 10);
  EXPECT_LT(racks.Form(), absl::Milliseconds(75));
  EXPECT_EQ(racks.communicator(5).measured_racks(), 2u);
}

TEST(MeasuredRacksTest, WithoutAGapNothingChanges) {
  UnnamedRacks racks({0, 1, 0, 1, 1, 0, 1, 0}, 1);
  EXPECT_LT(racks.Form(), absl::Milliseconds(50));
  for (uint32_t rank = 0; rank < racks.size(); ++rank) {
    EXPECT_EQ(racks.communicator(rank).measured_racks(), 0u);
    EXPECT_THAT(racks.RacksOf(rank), Each(""));
  }
}

// Between two members, in both directions, first contact included.
TEST(MeasuredRacksTest, WithLostProbesNothingChanges) {
  UnnamedRacks racks({0, 1, 0, 1, 1, 0, 1, 0}, 10);
  racks.Lose([](uint32_t from, uint32_t to, const Message& message) {
    return from + to == 2 && message.envelope.group_probe().has_distance();
  });
  EXPECT_LT(racks.Form(absl::Seconds(3)), absl::Seconds(2.1));
  for (uint32_t rank = 0; rank < racks.size(); ++rank) {
    EXPECT_EQ(racks.communicator(rank).measured_racks(), 0u);
    EXPECT_THAT(racks.RacksOf(rank), Each(""));
  }
}

// What only one of two members could measure is known to all.
TEST(MeasuredRacksTest, OneDirectionIsEnough) {
  UnnamedRacks racks({0, 1, 0, 1, 1, 0, 1, 0}, 10);
  racks.Lose([](uint32_t from, uint32_t, const Message& message) {
    // Distance probes of member 3 stay without a reply.
    const proto::GroupProbe& probe = message.envelope.group_probe();
    return from == 3 && probe.has_distance() && !probe.distance().reply();
  });
  racks.Form(absl::Seconds(3));
  EXPECT_EQ(racks.communicator(3).measured_racks(), 2u);
  EXPECT_EQ(racks.RacksOf(3), racks.RacksOf(0));
}

// A member of a group that takes steps like the hybrid step does: each step one sum, whose owners
// spread it with a gather of their own.
class Stepper {
 public:
  static constexpr size_t kElements = 10;

  Stepper(Ring& ring, uint32_t node, uint64_t last_step)
      : ring_(ring), node_(node), last_step_(last_step) {
    communicator().OnReady([this](absl::Time now, Outbox& outbox) {
      generations_.push_back({communicator().generation(), communicator().agreed_step()});
      step_ = communicator().agreed_step();
      Next(now, outbox);
    });
  }

  // Told by the machine, not by Reform: still waiting for a group.
  void LetGo() {
    communicator().OnLeft(
        [this](absl::Time, const absl::Status& status, Outbox&) { left_ = status; });
  }

  struct Generation {
    uint64_t number = 0;
    uint64_t agreed_step = 0;
    friend bool operator==(const Generation&, const Generation&) = default;
  };
  const std::vector<Generation>& generations() const { return generations_; }
  uint64_t step() const { return step_; }
  const absl::Status& left() const { return left_; }
  // Sums that were not the number of members.
  int wrong() const { return wrong_; }

 private:
  Communicator& communicator() { return ring_.communicator(node_); }

  void Next(absl::Time now, Outbox& outbox) {
    if (step_ == last_step_) return;
    ++step_;
    std::fill(gradient_.begin(), gradient_.end(), 1.0f);
    const auto parts = EvenParts(kElements, communicator().size());
    communicator().Start(now,
                         {.id = {.stream = 2, .sequence = step_},
                          .kind = CollectiveKind::kAllGather,
                          .data = values_,
                          .parts = parts,
                          .held = true,
                          .done = [this](absl::Time now, const CollectiveResult& result,
                                         Outbox& outbox) { Gathered(now, result, outbox); }},
                         outbox);
    communicator().Start(
        now,
        {.id = {.stream = 1, .sequence = step_},
         .kind = CollectiveKind::kReduceScatter,
         .data = gradient_,
         .parts = parts,
         .samples = 1,
         .arrived =
             [this](absl::Time now, const CollectiveResult& result, Outbox& outbox) {
               const PartRange own =
                   EvenParts(kElements, communicator().size())[communicator().rank()];
               std::copy_n(gradient_.begin() + static_cast<ptrdiff_t>(own.first), own.count,
                           values_.begin() + static_cast<ptrdiff_t>(own.first));
               communicator().Contribute(
                   now, {.stream = 2, .sequence = step_},
                   {.samples = result.samples, .agreed_plan_epoch = result.agreed_plan_epoch},
                   outbox);
             },
         .done = [this](absl::Time now, const CollectiveResult&,
                        Outbox& outbox) { Finish(now, outbox); }},
        outbox);
  }

  void Gathered(absl::Time now, const CollectiveResult& result, Outbox& outbox) {
    for (const float value : values_) {
      wrong_ += value == static_cast<float>(communicator().size()) ? 0 : 1;
    }
    wrong_ += result.samples == communicator().size() ? 0 : 1;
    over_ = result.agreed_plan_epoch > 0;
    Finish(now, outbox);
  }

  void Finish(absl::Time now, Outbox& outbox) {
    if (++finished_ < 2) return;
    finished_ = 0;
    if (!over_) {
      Next(now, outbox);
    } else {
      left_ = communicator().Reform(now, step_, outbox);
    }
  }

  Ring& ring_;
  const uint32_t node_;
  const uint64_t last_step_;
  std::vector<float> gradient_ = std::vector<float>(kElements);
  std::vector<float> values_ = std::vector<float>(kElements);
  uint64_t step_ = 0;
  int finished_ = 0;
  bool over_ = false;
  int wrong_ = 0;
  std::vector<Generation> generations_;
  absl::Status left_;
};

// Views of one group of a cluster of six.
proto::ClusterView Plan(uint64_t epoch, uint64_t generation, const std::vector<uint32_t>& members) {
  proto::ClusterView view = Ring::ActiveView(6);
  view.set_epoch(epoch);
  view.mutable_groups(0)->set_generation(generation);
  view.mutable_groups(0)->clear_members();
  for (const uint32_t member : members) {
    view.mutable_groups(0)->add_members(Ring::kFirstNode + member);
  }
  for (proto::Node& node : *view.mutable_nodes()) {
    if (std::count(members.begin(), members.end(), node.rank()) == 0) {
      node.set_standby("too slow");
    }
  }
  return view;
}

// Members hear of a new plan at random times; still all end a generation at the same step, and
// nothing is lost or counted twice.
TEST(ChangeTest, AllMembersChangeOverAtTheSameStep) {
  const std::vector<std::vector<uint32_t>> plans = {
      {0, 1, 2, 3}, {0, 2, 3, 4}, {4, 3, 2, 5}, {0, 1, 2, 3, 4, 5}};
  for (uint64_t seed = 0; seed < 12; ++seed) {
    Random random(seed);
    Ring ring(Plan(1, 1, plans[0]), kAgreed, seed);
    std::vector<std::unique_ptr<Stepper>> steppers;
    for (uint32_t node = 0; node < 6; ++node) {
      steppers.push_back(std::make_unique<Stepper>(ring, node, 300));
    }
    for (size_t plan = 1; plan < plans.size(); ++plan) {
      for (uint64_t steps = random.Below(300); steps > 0; --steps) Move(ring);
      std::vector<uint32_t> order = {0, 1, 2, 3, 4, 5};
      for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
      for (const uint32_t node : order) {
        // Some hear of another change first that has nothing to do with them.
        if (random.Chance(0.3)) ring.SetView(node, Plan(10 * plan, plan, plans[plan - 1]));
        ring.SetView(node, Plan(10 * plan + 1, plan + 1, plans[plan]));
        for (uint64_t steps = random.Below(100); steps > 0; --steps) Move(ring);
      }
      const auto changed = [&](uint32_t node) {
        return ring.communicator(node).ready() && ring.communicator(node).generation() == plan + 1;
      };
      for (int i = 0; i < 10'000 && !std::all_of(plans[plan].begin(), plans[plan].end(), changed);
           ++i) {
        Move(ring);
      }
    }
    RunInTime(ring);
    std::map<uint64_t, std::set<uint64_t>> agreed;
    uint64_t before = 0;
    for (uint32_t node = 0; node < 6; ++node) {
      EXPECT_TRUE(ring.communicator(node).failure().ok()) << ring.communicator(node).failure();
      EXPECT_EQ(steppers[node]->wrong(), 0);
      EXPECT_EQ(steppers[node]->step(), 300u) << "node " << node << " seed " << seed;
      EXPECT_EQ(steppers[node]->generations().back().number, plans.size());
      for (const auto& generation : steppers[node]->generations()) {
        agreed[generation.number].insert(generation.agreed_step);
      }
    }
    for (const auto& [generation, steps] : agreed) {
      ASSERT_EQ(steps.size(), 1u) << "generation " << generation << " seed " << seed;
      EXPECT_GE(*steps.begin(), before);
      before = *steps.begin();
    }
  }
}

// Plans follow each other faster than members hear of them, and some hear of a later one first: a
// generation that not all can take part in never begins, and nobody waits for it.
TEST(ChangeTest, PlansThatNotAllHaveSeenAreSkipped) {
  const std::vector<std::vector<uint32_t>> plans = {
      {0, 1, 2, 3}, {0, 2, 3, 4}, {4, 3, 2, 5}, {0, 1, 5, 3, 4}, {0, 1, 2, 3, 4, 5}};
  int skipped = 0;
  for (uint64_t seed = 0; seed < 24; ++seed) {
    Random random(seed);
    Ring ring(Plan(1, 1, plans[0]), seed % 2 == 0 ? kAgreed : kMeasured, seed);
    std::vector<std::unique_ptr<Stepper>> steppers;
    for (uint32_t node = 0; node < 6; ++node) {
      steppers.push_back(std::make_unique<Stepper>(ring, node, 120));
      steppers.back()->LetGo();
    }
    for (size_t plan = 1; plan < plans.size(); ++plan) {
      for (uint64_t moves = random.Below(200); moves > 0; --moves) Move(ring);
      for (uint32_t node = 0; node < 6; ++node) {
        if (plan + 1 < plans.size() && random.Chance(0.4)) continue;
        ring.SetView(node, Plan(10 * plan + 1, plan + 1, plans[plan]));
        for (uint64_t moves = random.Below(60); moves > 0; --moves) Move(ring);
      }
    }
    RunInTime(ring);
    for (uint32_t node = 0; node < 6; ++node) {
      ASSERT_TRUE(ring.communicator(node).failure().ok())
          << ring.communicator(node).failure() << " seed " << seed;
      EXPECT_EQ(steppers[node]->wrong(), 0);
      ASSERT_EQ(steppers[node]->step(), 120u) << "node " << node << " seed " << seed;
      EXPECT_EQ(steppers[node]->generations().back().number, plans.size());
    }
    skipped += steppers[3]->generations().size() < plans.size() ? 1 : 0;
  }
  EXPECT_GT(skipped, 0);
}

// A member that knows of the newer plan tells the members that query it, and these tell the others,
// which would not have queried.
TEST(ChangeTest, AGenerationThatCannotBeIsLeftByAllOfALargeGroup) {
  constexpr uint32_t kMembers = 40;
  proto::ClusterView plan = Ring::ActiveView(kMembers);
  proto::ClusterView nobody = plan;
  nobody.clear_groups();
  Ring ring(nobody, kAgreed, 1);
  proto::ClusterView next = plan;
  plan.set_epoch(2);
  next.set_epoch(3);
  next.mutable_groups(0)->set_generation(Ring::kGeneration + 1);
  ring.SetView(kMembers - 1, next);
  for (uint32_t node = 0; node + 1 < kMembers; ++node) ring.SetView(node, plan);
  RunInTime(ring);
  for (uint32_t node = 0; node + 1 < kMembers; ++node) {
    EXPECT_EQ(ring.communicator(node).collectives(), 0u) << "node " << node << " still waits";
    ring.SetView(node, next);
  }
  RunInTime(ring);
  for (uint32_t node = 0; node < kMembers; ++node) EXPECT_TRUE(ring.communicator(node).ready());
}

TEST(ChangeTest, WhoIsNoMemberOfTheNewerPlanTellsToo) {
  proto::ClusterView nobody = Plan(1, 1, {});
  nobody.clear_groups();
  Ring ring(nobody, kAgreed, 1);
  ring.SetView(0, Plan(2, 1, {0, 1}));
  RunInTime(ring);  // Node 1 keeps what node 0 says.
  for (const uint32_t node : {1, 2}) ring.SetView(node, Plan(3, 2, {0, 2}));
  RunInTime(ring);
  ring.SetView(0, Plan(3, 2, {0, 2}));
  RunInTime(ring);
  EXPECT_TRUE(ring.communicator(0).ready() && ring.communicator(2).ready());
  EXPECT_EQ(ring.communicator(0).generation(), 2u);
}

// Results say what the least informed of those behind them knows.
TEST(ChangeTest, ASumAndAGatherKnowOfAPlanOnlyIfAllDo) {
  Ring ring(Plan(1, 1, {0, 1, 2}), {.rendezvous = RendezvousMode::kAtOnce}, 1);
  std::vector<std::vector<float>> data(3, std::vector<float>(3));
  std::vector<std::vector<uint64_t>> seen(2, std::vector<uint64_t>(3, 99));
  const auto run = [&](size_t way, CollectiveKind kind, uint64_t sequence) {
    for (uint32_t node = 0; node < 3; ++node) {
      ring.communicator(node).Start(
          ring.now(),
          {.id = {.stream = 1, .sequence = sequence},
           .kind = kind,
           .data = data[node],
           .parts = EvenParts(3, 3),
           .done = [&seen, way, node](absl::Time, const CollectiveResult& result,
                                      Outbox&) { seen[way][node] = result.agreed_plan_epoch; }},
          ring.outbox(node));
    }
    ring.Run();
  };
  for (const uint32_t node : {0, 1}) ring.SetView(node, Plan(7, 2, {0, 1}));
  run(0, CollectiveKind::kReduceScatter, 1);
  run(1, CollectiveKind::kAllGather, 2);
  EXPECT_THAT(seen[0], ElementsAre(0, 0, 0));
  EXPECT_THAT(seen[1], ElementsAre(0, 0, 0));
  ring.SetView(2, Plan(8, 2, {0, 1}));
  run(0, CollectiveKind::kReduceScatter, 3);
  run(1, CollectiveKind::kAllGather, 4);
  EXPECT_THAT(seen[0], ElementsAre(7, 7, 7));
  EXPECT_THAT(seen[1], ElementsAre(7, 7, 7));
}

TEST(ChangeTest, NobodyChangesOverBeforeAllKnow) {
  Ring ring(Plan(1, 1, {0, 1, 2}), kAgreed, 1);
  std::vector<std::unique_ptr<Stepper>> steppers;
  for (uint32_t node = 0; node < 3; ++node) {
    steppers.push_back(std::make_unique<Stepper>(ring, node, 50));
  }
  for (const uint32_t node : {0, 1}) {
    ring.SetView(node, Plan(2, 2, {0, 1}));
    EXPECT_TRUE(ring.communicator(node).change_pending() || !ring.communicator(node).formed());
  }
  RunInTime(ring);
  for (uint32_t node = 0; node < 3; ++node) {
    EXPECT_EQ(steppers[node]->step(), 50u);
    EXPECT_EQ(ring.communicator(node).generation(), 1u);
  }
}

TEST(ChangeTest, WhoIsInNoGroupAnyMoreIsToldWhyAndMayComeBack) {
  Ring ring(Plan(1, 1, {0, 1, 2}), kAgreed, 1);
  std::vector<std::unique_ptr<Stepper>> steppers;
  for (uint32_t node = 0; node < 3; ++node) {
    steppers.push_back(std::make_unique<Stepper>(ring, node, 1'000'000));
  }
  const auto run = [&](int messages) {
    for (int i = 0; i < messages; ++i) Move(ring);
  };
  run(500);
  for (uint32_t node = 0; node < 3; ++node) ring.SetView(node, Plan(2, 2, {0, 1}));
  run(500);
  EXPECT_EQ(steppers[2]->left().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(steppers[2]->left().message(), HasSubstr("too slow"));
  EXPECT_FALSE(ring.communicator(2).formed());
  EXPECT_EQ(ring.communicator(0).size(), 2u);
  const uint64_t alone = steppers[0]->step();
  for (uint32_t node = 0; node < 3; ++node) ring.SetView(node, Plan(3, 3, {0, 1, 2}));
  run(500);
  EXPECT_GT(steppers[2]->step(), alone);
  EXPECT_EQ(steppers[2]->generations().size(), 2u);
}

TEST(ChangeTest, NoChangeWithoutAPlanOrWhileCollectivesAreUnderWay) {
  Ring ring(Plan(1, 1, {0, 1}), {.rendezvous = RendezvousMode::kAtOnce}, 1);
  EXPECT_EQ(ring.communicator(0).Reform(ring.now(), 3, ring.outbox(0)).code(),
            absl::StatusCode::kFailedPrecondition);
  ring.communicator(0).Start(ring.now(), {.id = ring.communicator(0).NextPlain()}, ring.outbox(0));
  ring.SetView(0, Plan(2, 2, {0, 1, 3}));
  EXPECT_TRUE(ring.communicator(0).change_pending());
  EXPECT_THAT(ring.communicator(0).Reform(ring.now(), 3, ring.outbox(0)).message(),
              HasSubstr("1 collectives are under way"));
}

// Of member 0; `outcome` is how it ends.
void StartBarrier(Ring& ring, absl::Status& outcome) {
  Collective barrier{.id = ring.communicator(0).NextPlain()};
  barrier.done = [&outcome](absl::Time, const CollectiveResult& result, Outbox&) {
    outcome = result.status;
  };
  ring.communicator(0).Start(ring.now(), std::move(barrier), ring.outbox(0));
}

TEST(ChangeTest, AGroupThatHasEndedAndLostSomebodyIsLeftInTheMiddleOfAStep) {
  Ring ring(Plan(1, 1, {0, 1, 2}), kAgreed, 1);
  RunInTime(ring);
  absl::Status outcome;
  StartBarrier(ring, outcome);
  proto::ClusterView view = Plan(2, 2, {0, 1});
  view.mutable_groups(0)->set_state(proto::Group::DONE);
  ring.SetView(0, view);
  // The others may yet take their part.
  EXPECT_TRUE(outcome.ok());
  EXPECT_TRUE(ring.communicator(0).formed());
  view.set_epoch(3);
  view.mutable_nodes(2)->set_state(proto::Node::LEFT);
  view.mutable_nodes(2)->set_departure("done");
  ring.SetView(0, view);
  EXPECT_EQ(outcome.code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(ring.communicator(0).formed());
}

TEST(ChangeTest, ADeathEndsWhatIsUnderWayAndTheOthersGoOn) {
  Ring ring(Plan(1, 1, {0, 1, 2}), kAgreed, 1);
  RunInTime(ring);
  absl::Status outcome;
  StartBarrier(ring, outcome);
  proto::ClusterView view = Plan(2, 2, {0, 1});
  view.mutable_nodes(2)->set_state(proto::Node::DEAD);
  view.mutable_nodes(2)->set_departure("silent for 3 s");
  ring.SetView(0, view);
  EXPECT_EQ(outcome.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(outcome.message(), HasSubstr("worker-2 (silent for 3 s)"));
  EXPECT_FALSE(ring.communicator(0).ready());
  ring.SetView(1, view);
  RunInTime(ring);
  for (const uint32_t rank : {0u, 1u}) {
    EXPECT_TRUE(ring.communicator(rank).ready());
    EXPECT_TRUE(ring.communicator(rank).failure().ok());
    EXPECT_EQ(ring.communicator(rank).size(), 2u);
  }
}

}  // namespace
}  // namespace covey::worker
