// A group that loses members in the middle of a step.

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/planted_bug_switch.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/hybrid_fixture.h"

namespace covey::worker {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Workers of which some are in one group, and whose members die. Gradients are integers, so that
// sums tell who is in them, whatever the order.
class Mourners {
 public:
  struct Options {
    Algorithm algorithm = Algorithm::kRing;
    HybridOptions hybrid;
    uint64_t seed = 1;
    Model model = Integers();
    // Of the workers, those that are in the group at first; empty = all.
    std::vector<uint32_t> members;
  };
  Mourners(uint32_t workers, const Options& options)
      : fleet(FirstView(workers, options),
              {.slice_bytes = 16,
               .formation = GroupMachine::Formation::kAgreed,
               .algorithm = options.algorithm},
              options.model, options.hybrid, options.seed),
        alive_(workers, true),
        waiting_(workers, 0),
        failures(workers),
        view_(FirstView(workers, options)),
        members_(MembersOf(view_)) {
    fleet.server.members_die = true;
    // CheckUpdates notices when a step is skipped.
    fleet.server.groups_merge = true;
    fleet.server.on_push = [this](const proto::PushRequest& push, const std::vector<float>& sum) {
      CheckSum(push, sum);
    };
    for (uint32_t rank = 0; rank < workers; ++rank) fleet.ring.KeepApart(rank);
    fleet.PullAll();
  }
  static Model Integers() {
    Model model;
    model.tables = {{5, 4, 7, 1}, {2, 3}, {3}};
    model.spec = proto::TableSpec();
    model.spec.mutable_optimizer()->set_kind(proto::Optimizer::SGD);
    model.spec.mutable_learning_rate()->set_base(1);
    model.spec.mutable_contract()->set_kind(proto::Contract::BSP);
    return model;
  }

  void Kill(uint32_t rank) {
    alive_[rank] = false;
    fleet.Kill(rank);
  }
  // The scheduler takes it for dead.
  void Freeze(uint32_t rank) {
    alive_[rank] = false;
    fleet.ring.Freeze(rank);
  }
  // A new plan, of which nobody knows yet: those of `members` that live.
  void Plan(const std::vector<uint32_t>& members, bool recovery) {
    view_.set_epoch(view_.epoch() + 1);
    proto::Group& group = *view_.mutable_groups(0);
    group.set_generation(group.generation() + 1);
    if (recovery) group.set_recovery_generation(group.generation());
    group.clear_members();
    group.clear_minimum_members();
    for (const uint32_t rank : members) {
      if (alive_[rank]) group.add_members(Ring::kFirstNode + rank);
    }
    for (uint32_t rank = 0; rank < alive_.size(); ++rank) {
      if (alive_[rank]) continue;
      view_.mutable_nodes(static_cast<int>(rank))->set_state(proto::Node::DEAD);
      view_.mutable_nodes(static_cast<int>(rank))->set_departure("silent for 2.6 s");
    }
    members_ = MembersOf(view_);
  }
  void PlanWithoutTheDead() { Plan(members_, true); }
  void Drain(uint32_t rank) { view_.mutable_nodes(static_cast<int>(rank))->set_draining(true); }
  void LetGoOnWith(uint32_t minimum_members) {
    view_.set_epoch(view_.epoch() + 1);
    view_.mutable_groups(0)->set_minimum_members(minimum_members);
    view_.mutable_groups(0)->set_grace_ms(100);
  }
  void Show(uint32_t rank) { fleet.ShowView(rank, view_); }
  void ShowAll() {
    for (uint32_t rank = 0; rank < alive_.size(); ++rank) {
      if (alive_[rank]) Show(rank);
    }
  }
  // Of the newest plan.
  const std::vector<uint32_t>& members() const { return members_; }

  bool Idle(uint32_t rank) const { return waiting_[rank] == 0; }
  void Begin(uint32_t rank) {
    fleet.hybrids[rank]->BeginStep(fleet.ring.now(), fleet.ring.outbox(rank));
    for (const size_t t : fleet.RandomOrder()) {
      std::fill(fleet.gradients[{rank, t}].begin(), fleet.gradients[{rank, t}].end(),
                -static_cast<float>(1 + rank));
      fleet.hybrids[rank]->Submit(fleet.ring.now(), Watched(rank, fleet.WorkOf(rank, t, 1 + rank)),
                                  fleet.ring.outbox(rank));
    }
  }
  void Begin() {
    for (const uint32_t rank : members_) Begin(rank);
  }
  void Step() {
    Begin();
    fleet.Run();
  }
  void Pull(uint32_t rank) {
    for (const size_t t : fleet.RandomOrder()) {
      fleet.hybrids[rank]->Pull(fleet.ring.now(), Watched(rank, fleet.WorkOf(rank, t, 0)),
                                fleet.ring.outbox(rank));
    }
  }
  void Join(uint32_t rank) {
    ASSERT_TRUE(fleet.ring.machine(rank).ready());
    fleet.SetTables(rank);
    Pull(rank);
    fleet.Run();
  }

  // Everybody has ended this step, with the same values. `steps`: exactly this one.
  void CheckAllWell(uint64_t step) {
    for (const uint32_t rank : members_) {
      const GroupMachine& group = fleet.ring.machine(rank);
      if (!Idle(rank)) Complain(absl::StrCat(rank, " waits for ", waiting_[rank]));
      if (!failures[rank].ok()) Complain(failures[rank].ToString());
      if (!group.failure().ok()) Complain(group.failure().ToString());
      if (fleet.hybrids[rank]->step().value() != step) {
        Complain(absl::StrCat(rank, " is at step ", fleet.hybrids[rank]->step().value()));
      }
      for (size_t t = 0; t < fleet.model.tables.size(); ++t) {
        if (!SameBits(fleet.values[{rank, t}], fleet.values[{members_[0], t}])) {
          Complain(absl::StrCat(rank, " has other values of tensor ", t));
        }
      }
    }
  }
  // Pushes come late, or twice, or of an older generation; each shard applies one per step.
  void CheckUpdates(uint64_t steps) {
    for (const auto& [shard, updates] : fleet.server.updates()) {
      if (updates != steps) Complain(absl::StrCat(updates, " updates after step ", steps));
    }
  }

 private:
  static proto::ClusterView FirstView(uint32_t workers, const Options& options) {
    proto::ClusterView view = ViewWithTables(workers, options.model);
    if (options.members.empty()) return view;
    view.mutable_groups(0)->clear_members();
    for (const uint32_t rank : options.members) {
      view.mutable_groups(0)->add_members(Ring::kFirstNode + rank);
    }
    return view;
  }
  static std::vector<uint32_t> MembersOf(const proto::ClusterView& view) {
    std::vector<uint32_t> ranks;
    for (const uint64_t node : view.groups(0).members()) {
      ranks.push_back(static_cast<uint32_t>(node - Ring::kFirstNode));
    }
    return ranks;
  }
  void Complain(std::string what) { violations.push_back(std::move(what)); }
  Work Watched(uint32_t rank, Work work) {
    ++waiting_[rank];
    work.done = [this, rank](absl::Time, const absl::Status& status, Outbox&) {
      --waiting_[rank];
      failures[rank].Update(status);
    };
    return work;
  }

  // Each member's gradient is in it with all its samples, or not at all.
  void CheckSum(const proto::PushRequest& push, const std::vector<float>& sum) {
    if (push.format() != proto::WIRE_FLOAT32) return;
    for (uint32_t set = 1; set < 1u << alive_.size(); ++set) {
      uint64_t samples = 0;
      float expected = 0;
      for (uint32_t rank = 0; rank < alive_.size(); ++rank) {
        if ((set >> rank & 1) == 0) continue;
        samples += 1 + rank;
        expected -= static_cast<float>((1 + rank) * (1 + rank));
      }
      if (samples == push.samples() &&
          std::all_of(sum.begin(), sum.end(),
                      [expected](float element) { return element == expected; })) {
        return;
      }
    }
    Complain(absl::StrCat("a sum of ", sum[0], " over ", push.samples(), " samples in step ",
                          push.step()));
  }

 public:
  Fleet fleet;

 private:
  std::vector<bool> alive_;
  std::vector<size_t> waiting_;

 public:
  std::vector<absl::Status> failures;   // the first of each program
  std::vector<std::string> violations;  // of what is promised

 private:
  proto::ClusterView view_;
  std::vector<uint32_t> members_;
};

struct Case {
  Algorithm algorithm = Algorithm::kRing;
  uint32_t lag = 0;
  bool fused = false;

  Mourners::Options OptionsOf(uint64_t seed) const {
    return {.algorithm = algorithm,
            .hybrid = {.lag = lag, .fusion = {.bucket_bytes = fused ? 1u << 20 : 0u}},
            .seed = seed};
  }
};

// A member dies after so many messages of the second step. True when the step was over before.
bool LetOneDie(const Case& with, uint32_t victim, uint64_t messages,
               std::vector<std::string>& violations) {
  Mourners f(3, with.OptionsOf(1 + messages));
  f.Step();
  f.CheckAllWell(1);
  f.Begin();
  const bool over = !f.fleet.RunMessages(messages);
  f.Kill(victim);
  // What is on its way arrives, or is lost with the connection.
  if (messages % 2 == 0) f.fleet.Run();
  f.PlanWithoutTheDead();
  for (const uint32_t rank : f.members()) {
    f.Show(rank);
    f.fleet.RunMessages(messages % 5);
  }
  f.fleet.Run();
  f.CheckAllWell(2);
  f.CheckUpdates(2);
  f.Step();
  f.CheckAllWell(3);
  f.CheckUpdates(3);
  violations = f.violations;
  return over;
}

class HybridRecoveryTest : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Cases, HybridRecoveryTest,
                         testing::Values(Case{}, Case{.fused = true}, Case{.lag = 1},
                                         Case{.algorithm = Algorithm::kDirect},
                                         Case{.algorithm = Algorithm::kTree},
                                         Case{.algorithm = Algorithm::kHalvingDoubling},
                                         Case{.algorithm = Algorithm::kHierarchical}));

TEST_P(HybridRecoveryTest, AMemberMayDieAfterAnyMessageOfAStep) {
  for (uint32_t victim = 0; victim < 3; ++victim) {
    bool over = false;
    for (uint64_t messages = 0; !over; ++messages) {
      std::vector<std::string> violations;
      over = LetOneDie(GetParam(), victim, messages, violations);
      ASSERT_THAT(violations, IsEmpty()) << "member " << victim << " after " << messages;
    }
  }
}

TEST_P(HybridRecoveryTest, MembersDieOneAfterTheOtherUntilOneIsLeft) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Random random(seed);
    Mourners f(5, GetParam().OptionsOf(seed));
    uint64_t step = 0;
    while (f.members().size() > 1) {
      f.Begin();
      ++step;
      // Up to two at once, or the second while the others form anew.
      for (uint64_t deaths = 1 + random.Below(2); deaths > 0 && f.members().size() > 1; --deaths) {
        f.fleet.RunMessages(random.Below(120));
        f.Kill(f.members()[random.Below(f.members().size())]);
        if (random.Chance(0.3)) f.fleet.Run();
        f.PlanWithoutTheDead();
        for (const uint32_t rank : f.members()) {
          if (random.Chance(0.7)) f.Show(rank);
          f.fleet.RunMessages(random.Below(20));
        }
      }
      f.ShowAll();
      f.fleet.Run();
      f.CheckAllWell(step);
      f.CheckUpdates(step);
      ASSERT_THAT(f.violations, IsEmpty()) << "seed " << seed << " step " << step;
    }
    f.Step();
    f.CheckAllWell(step + 1);
    ASSERT_THAT(f.violations, IsEmpty()) << "seed " << seed;
  }
}

TEST_P(HybridRecoveryTest, ANewcomerThatDiesBeforeTheCutBreaksNothing) {
  for (uint64_t messages = 0; messages < 60; ++messages) {
    Mourners::Options options = GetParam().OptionsOf(1 + messages);
    options.members = {0, 1};
    Mourners f(3, options);
    f.Step();
    f.Plan({0, 1, 2}, false);
    f.Show(0);
    if (messages % 3 != 0) f.Show(1);
    if (messages % 3 != 1) f.Show(2);
    for (const uint32_t rank : {0u, 1u}) f.Begin(rank);
    f.fleet.RunMessages(messages);
    f.Kill(2);
    if (messages % 2 == 0) f.fleet.Run();
    f.Plan({0, 1}, false);
    f.ShowAll();
    f.fleet.Run();
    f.CheckAllWell(2);
    ASSERT_THAT(f.violations, IsEmpty()) << "after " << messages << " messages";
    f.Step();
    f.CheckAllWell(3);
    f.CheckUpdates(3);
    f.Step();
    f.CheckAllWell(4);
    ASSERT_THAT(f.violations, IsEmpty()) << "after " << messages << " messages";
    // Nobody had met it, so the plan changes between two steps, as any other.
    if (messages % 3 == 0) {
      EXPECT_EQ(f.fleet.hybrids[0]->recoveries(), 0u);
    }
  }
}

TEST_P(HybridRecoveryTest, AMemberThatWasFrozenIsToldAndChangesNothing) {
  for (uint64_t messages = 0; messages < 100; messages += 3) {
    Mourners f(3, GetParam().OptionsOf(1 + messages));
    f.Step();
    f.Begin();
    f.fleet.RunMessages(messages);
    f.Freeze(1);
    f.PlanWithoutTheDead();
    f.ShowAll();
    f.fleet.Run();
    f.CheckAllWell(2);
    f.Step();
    f.fleet.ring.Thaw(1);
    f.fleet.Run();
    f.Show(1);
    f.fleet.Run();
    f.CheckAllWell(3);
    f.CheckUpdates(3);
    ASSERT_THAT(f.violations, IsEmpty()) << "after " << messages << " messages";
    EXPECT_TRUE(f.Idle(1));
    // Some of what it was sent while it stood still is lost.
    f.Begin(1);
    EXPECT_TRUE(absl::IsAborted(f.failures[1]) || absl::IsUnavailable(f.failures[1]))
        << f.failures[1];
  }
}

TEST_P(HybridRecoveryTest, AMemberDiesWhileTheOthersPull) {
  for (uint64_t messages = 0; messages < 60; ++messages) {
    Mourners f(3, GetParam().OptionsOf(1 + messages));
    f.Step();
    for (const uint32_t rank : {0u, 1u}) f.Pull(rank);
    f.fleet.RunMessages(messages / 2);
    if (messages % 2 == 0) f.Pull(2);
    f.fleet.RunMessages(messages / 2);
    f.Kill(1);
    f.PlanWithoutTheDead();
    f.ShowAll();
    f.fleet.Run();
    if (messages % 2 == 1) f.Pull(2);
    f.fleet.Run();
    f.CheckAllWell(1);
    f.Step();
    f.CheckAllWell(2);
    f.CheckUpdates(2);
    ASSERT_THAT(f.violations, IsEmpty()) << "after " << messages << " messages";
  }
}

TEST_P(HybridRecoveryTest, AMemberThatDrainsIsLetGoBetweenTwoSteps) {
  Mourners f(3, GetParam().OptionsOf(1));
  f.Step();
  f.Drain(1);
  f.Plan({0, 2}, false);
  f.ShowAll();
  for (const uint32_t rank : {0u, 1u, 2u}) f.Begin(rank);
  f.fleet.Run();
  f.CheckAllWell(2);
  EXPECT_TRUE(f.failures[1].ok());
  f.Begin(1);
  EXPECT_EQ(f.failures[1].code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(f.failures[1].message(), HasSubstr("was asked to go"));
  f.Step();
  f.CheckAllWell(3);
  EXPECT_EQ(f.fleet.hybrids[0]->recoveries(), 0u);
  // The last one goes by itself.
  f.Kill(2);
  f.PlanWithoutTheDead();
  f.ShowAll();
  f.fleet.Run();
  f.Step();
  EXPECT_TRUE(f.failures[0].ok());
  f.Drain(0);
  f.Show(0);
  f.Begin(0);
  f.fleet.Run();
  EXPECT_TRUE(f.failures[0].ok());
  f.Begin(0);
  EXPECT_EQ(f.failures[0].code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(f.violations, IsEmpty());
}

TEST(HybridRecoveryOneTest, WhoSteppedAsideDoesTheStepAgainWithoutAGradient) {
  Mourners f(3, Case{}.OptionsOf(1));
  f.LetGoOnWith(2);
  f.ShowAll();
  f.Step();
  for (const uint32_t rank : {0u, 1u}) f.Begin(rank);
  f.fleet.Run();
  f.fleet.ring.Pass(absl::Seconds(1));
  f.fleet.withheld_table = 2;
  f.fleet.Run();
  EXPECT_GT(f.fleet.hybrids[2]->steps_aside(), 0u);
  f.Kill(0);
  f.PlanWithoutTheDead();
  f.ShowAll();
  f.fleet.withheld_table = 0;
  f.fleet.Run();
  f.Begin(2);
  f.fleet.Run();
  for (const uint32_t rank : {1u, 2u}) EXPECT_TRUE(f.failures[rank].ok()) << f.failures[rank];
  EXPECT_TRUE(f.Idle(1));
  if (!f.Idle(2)) f.Begin(1);
  f.fleet.Run();
  EXPECT_TRUE(f.Idle(2));
  EXPECT_THAT(f.violations, IsEmpty());
}

TEST(HybridRecoveryOneTest, WhatRoundingLostCountsOnce) {
  Model model = Mourners::Integers();
  model.spec.set_gradient_format(proto::WIRE_INT8_BLOCK);
  for (uint64_t messages = 0; messages < 120; messages += 2) {
    Mourners::Options options = Case{.fused = messages % 4 == 0}.OptionsOf(1 + messages);
    options.model = model;
    Mourners f(3, options);
    f.Step();
    f.Begin();
    f.fleet.RunMessages(messages);
    f.Kill(messages % 3);
    f.PlanWithoutTheDead();
    f.ShowAll();
    f.fleet.Run();
    f.CheckAllWell(2);
    f.CheckUpdates(2);
    // Sums of equal elements lose next to nothing, so all values are near those of whole sums.
    const std::vector<float>& values = f.fleet.values[{f.members()[0], 2}];
    for (const float value : values) {
      EXPECT_NEAR(value, std::round(values[0] * 60) / 60, 0.5) << messages;
    }
    ASSERT_THAT(f.violations, IsEmpty()) << "after " << messages << " messages";
  }
}

// A LOCAL group whose servers take the mean of what it learns, so that its values after each step are
// those of one process that learns alone.
class LocalMourners : public Mourners {
 public:
  static constexpr uint64_t kSteps = 4;  // per round
  static constexpr float kRate = 0.5;

  LocalMourners(uint32_t workers, uint64_t overlap, bool fused, uint64_t seed)
      : Mourners(workers, OptionsOf(overlap, fused, seed)) {
    fleet.server.on_push = nullptr;
  }

  // What a step teaches each element.
  float Lesson(const std::vector<uint32_t>& members) const {
    float sum = 0;
    float samples = 0;
    for (const uint32_t rank : members) {
      sum += static_cast<float>((1 + rank) * (1 + rank));
      samples += static_cast<float>(1 + rank);
    }
    return kRate * sum / samples;
  }
  // All elements of all members have learned so much.
  void CheckLearned(float least, float most) {
    for (const uint32_t rank : members()) {
      for (size_t t = 0; t < fleet.model.tables.size(); ++t) {
        const std::vector<float>& values = fleet.values[{rank, t}];
        for (size_t i = 0; i < values.size(); ++i) {
          const float learned = values[i] - Model::FirstValue(t, i);
          if (learned > least - 0.001f && learned < most + 0.001f) continue;
          violations.push_back(absl::StrCat(
              "element ", i, " of tensor ", t, " at ", rank, " has learned ", learned, " and not ",
              least, " to ", most, " after step ", fleet.hybrids[rank]->step().value()));
        }
      }
    }
  }

 private:
  static Options OptionsOf(uint64_t overlap, bool fused, uint64_t seed) {
    Options options = Case{.fused = fused}.OptionsOf(seed);
    proto::TableSpec& spec = options.model.spec;
    spec.mutable_inner_learning_rate()->set_base(kRate);
    spec.mutable_contract()->set_kind(proto::Contract::LOCAL);
    spec.mutable_contract()->set_local_steps(kSteps);
    spec.mutable_contract()->set_overlap_steps(overlap);
    return options;
  }
};

// Of both rounds no step is lost, and none counts twice, whenever a member dies.
void LetOneDieInAnyStepOfARound(uint64_t overlap, bool fused) {
  for (uint64_t death = 1; death <= 2 * LocalMourners::kSteps; ++death) {
    for (uint64_t messages = 0; messages < 60; messages += 3) {
      LocalMourners f(3, overlap, fused, 1 + messages);
      const float whole = f.Lesson({0, 1, 2});
      for (uint64_t step = 1; step < death; ++step) f.Step();
      f.Begin();
      f.fleet.RunMessages(messages);
      f.Kill(messages % 3);
      if (messages % 2 == 0) f.fleet.Run();
      f.PlanWithoutTheDead();
      f.ShowAll();
      f.fleet.Run();
      const float rest = f.Lesson(f.members());
      // With overlap one step may be part of no push.
      const float lost = overlap > 0 ? std::max(whole, rest) : 0;
      for (uint64_t step = death; step <= 2 * LocalMourners::kSteps + 1; ++step) {
        if (step > death) f.Step();
        f.CheckAllWell(step);
        const auto before = static_cast<float>(death - 1);
        const auto after = static_cast<float>(step - death);
        const float least = std::min(whole, rest);
        f.CheckLearned(before * whole + least + after * rest - lost,
                       before * whole + std::max(whole, rest) + after * rest);
      }
      f.CheckUpdates(2);
      ASSERT_THAT(f.violations, IsEmpty()) << "step " << death << " after " << messages;
    }
  }
}

TEST(HybridRecoveryLocalTest, NoStepOfARoundIsLostWithAMember) {
  for (const bool fused : {false, true}) LetOneDieInAnyStepOfARound(0, fused);
}

TEST(HybridRecoveryLocalTest, WithOverlapAtMostOneStepIs) {
  for (const bool fused : {false, true}) LetOneDieInAnyStepOfARound(2, fused);
}

TEST(HybridRecoveryLocalTest, NorIsItWhenAnotherDiesWhileTheyMeet) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Random random(seed);
    LocalMourners f(5, 0, seed % 2 == 0, seed);
    float least = 0;
    float most = 0;
    for (uint64_t step = 1; step <= 2 * LocalMourners::kSteps; ++step) {
      float fewest = f.Lesson(f.members());
      float all = fewest;
      const size_t members = f.members().size();
      f.Begin();
      if (f.members().size() > 2 && random.Chance(0.4)) {
        for (uint64_t deaths = 1 + random.Below(2); deaths > 0; --deaths) {
          f.fleet.RunMessages(random.Below(120));
          f.Kill(f.members()[random.Below(f.members().size())]);
          if (random.Chance(0.3)) f.fleet.Run();
          f.PlanWithoutTheDead();
          for (const uint32_t rank : f.members()) {
            if (random.Chance(0.7)) f.Show(rank);
            f.fleet.RunMessages(random.Below(20));
          }
          const float lesson = f.Lesson(f.members());
          fewest = std::min(fewest, lesson);
          all = std::max(all, lesson);
        }
        f.ShowAll();
      }
      f.fleet.Run();
      // Those who had finished it may be the two that die.
      least += f.members().size() + 1 < members ? 0 : fewest;
      most += all;
      f.CheckAllWell(step);
      f.CheckLearned(least, most);
      ASSERT_THAT(f.violations, IsEmpty()) << "seed " << seed << " step " << step;
    }
    f.CheckUpdates(2);
    ASSERT_THAT(f.violations, IsEmpty()) << "seed " << seed;
  }
}

TEST(HybridRecoveryOneTest, DistributedGroupsSayThatTheyCannotGoOn) {
  Mourners::Options options = Case{}.OptionsOf(1);
  options.hybrid.synchronization = Synchronization::kDistributed;
  Mourners f(3, options);
  f.Begin();
  f.fleet.RunMessages(5);
  f.Kill(2);
  f.PlanWithoutTheDead();
  f.ShowAll();
  f.fleet.Run();
  for (const uint32_t rank : {0u, 1u}) {
    EXPECT_TRUE(f.Idle(rank));
    EXPECT_EQ(f.failures[rank].code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(f.failures[rank].message(), HasSubstr("distributed synchronisation keeps"));
  }
}

// The members that are left would wait longer for each other than the program allows.
void LetThemNeverMeet(bool fused, bool pull) {
  Mourners f(3, Case{.fused = fused}.OptionsOf(1));
  f.Step();
  if (pull) {
    for (const uint32_t rank : f.members()) f.Pull(rank);
  } else {
    f.Begin();
  }
  f.fleet.RunMessages(2);
  const absl::Time deadline = f.fleet.ring.now() + kPatience;
  f.Kill(2);
  f.PlanWithoutTheDead();
  f.fleet.ring.Freeze(1);
  f.Show(0);
  f.fleet.Run();
  ASSERT_FALSE(f.Idle(0));
  EXPECT_EQ(f.fleet.hybrids[0]->NextWake(), deadline);
  f.fleet.ring.Pass(kPatience);
  f.fleet.Run();
  EXPECT_TRUE(f.Idle(0));
  EXPECT_EQ(f.failures[0].code(), absl::StatusCode::kDeadlineExceeded) << f.failures[0];
  EXPECT_THAT(f.failures[0].message(), HasSubstr("still waits for all members to meet"));
}

TEST(HybridRecoveryOneTest, DeadlinesHoldWhileMembersMeet) {
  for (const bool fused : {false, true}) {
    for (const bool pull : {false, true}) LetThemNeverMeet(fused, pull);
  }
}

TEST(HybridRecoveryOneTest, RecoveriesAreCountedAndTimed) {
  Mourners f(3, Case{}.OptionsOf(1));
  f.Step();
  f.Begin();
  f.fleet.RunMessages(10);
  f.Kill(2);
  f.PlanWithoutTheDead();
  f.Show(0);
  f.fleet.ring.Pass(absl::Seconds(2));
  f.ShowAll();
  f.fleet.Run();
  EXPECT_EQ(f.fleet.hybrids[0]->recoveries(), 1u);
  EXPECT_EQ(f.fleet.hybrids[0]->recovery_time(), absl::Seconds(2));
  EXPECT_EQ(f.fleet.hybrids[1]->recovery_time(), absl::ZeroDuration());
}

class PlantedRecoveryTest : public testing::TestWithParam<PlantedBug> {
 protected:
  ~PlantedRecoveryTest() override { PlantBug(PlantedBug::kNone); }
};
INSTANTIATE_TEST_SUITE_P(Bugs, PlantedRecoveryTest,
                         testing::Values(PlantedBug::kPartialSumAsSuccess,
                                         PlantedBug::kStaleGroupGeneration));

TEST_P(PlantedRecoveryTest, IsFound) {
  PlantBug(GetParam());
  std::vector<std::string> violations;
  for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kDirect, Algorithm::kTree}) {
    for (uint64_t messages = 0; messages < 60; ++messages) {
      std::vector<std::string> found;
      LetOneDie({.algorithm = algorithm}, 2, messages, found);
      violations.insert(violations.end(), found.begin(), found.end());
    }
  }
  EXPECT_THAT(violations, Not(IsEmpty()));
}

}  // namespace
}  // namespace covey::worker
