// SPDX-License-Identifier: Apache-2.0
#include "worker/hybrid/generation_change.h"

#include <map>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "worker/testing/recovery_fixture.h"

namespace covey::worker {
namespace {

using State = GenerationChange::State;

TEST(GenerationChangeTest, LegalTransitionsAreThoseOfTheDiagram) {
  const std::map<State, std::set<State>> diagram = {
      {State::kNoModel, {State::kRunning, State::kLeft}},
      {State::kRunning, {State::kLastStep, State::kChanging, State::kLeft}},
      {State::kLastStep, {State::kRunning, State::kChanging, State::kLeft}},
      {State::kChanging, {State::kRunning, State::kLeft}},
      {State::kLeft, {State::kRunning}}};
  ASSERT_EQ(diagram.size(), static_cast<size_t>(State::kLeft) + 1);
  for (const auto& [from, after] : diagram) {
    for (const auto& [to, ignored] : diagram) {
      EXPECT_EQ(GenerationChange::IsLegal(from, to), after.contains(to))
          << static_cast<int>(from) << " to " << static_cast<int>(to);
    }
  }
}

TEST(GenerationChangeTest, TheNextGenerationsStepsAreAsFarAhead) {
  const GenerationChange::NextGeneration next{.from = Step(7), .to = Step(20)};
  EXPECT_EQ(next.Renumbered(Step(6)), Step(20));
  EXPECT_EQ(next.Renumbered(Step(7)), Step(20));
  EXPECT_EQ(next.Renumbered(Step(9)), Step(22));
}

// The states that each member goes through, without repetitions.
class Watch {
 public:
  explicit Watch(GroupWithLosses& group) : group_(group), seen_(group.fleet.hybrids.size()) {
    Look();
  }
  void Look() {
    for (size_t rank = 0; rank < seen_.size(); ++rank) {
      const State now = group_.fleet.hybrids[rank]->state();
      if (seen_[rank].empty() || seen_[rank].back() != now) seen_[rank].push_back(now);
    }
  }
  void Run() {
    for (int quiet = 0; quiet < 3;) {
      quiet = group_.fleet.RunMessages(1) ? 0 : quiet + 1;
      Look();
    }
  }
  const std::vector<State>& seen(uint32_t rank) const { return seen_[rank]; }

 private:
  GroupWithLosses& group_;
  std::vector<std::vector<State>> seen_;
};

TEST(GenerationChangeTest, APlannedChangeComesAfterTheLastStep) {
  GroupWithLosses group(3, {.members = {0, 1, 2}});
  group.Step();
  Watch watch(group);
  group.Plan({0, 1}, /*recovery=*/false);
  group.ShowAll();
  group.Begin();
  group.Begin(2);
  watch.Run();
  // A member that hears of the others' last messages passes through all of them at once.
  const std::vector<State> walk = {State::kRunning, State::kLastStep, State::kChanging,
                                   State::kRunning};
  EXPECT_TRUE(watch.seen(0) == walk || watch.seen(1) == walk);
  EXPECT_EQ(watch.seen(2).back(), State::kLeft);
}

TEST(GenerationChangeTest, ALossInterruptsTheStep) {
  GroupWithLosses group(3, {});
  group.Step();
  Watch watch(group);
  group.Begin();
  group.fleet.RunMessages(3);
  group.Kill(2);
  group.PlanWithoutTheDead();
  group.ShowAll();
  watch.Look();
  watch.Run();
  for (const uint32_t rank : {0u, 1u}) {
    EXPECT_EQ(watch.seen(rank),
              (std::vector<State>{State::kRunning, State::kChanging, State::kRunning}));
    EXPECT_EQ(group.fleet.hybrids[rank]->model().finished(), Step(2));
  }
}

TEST(GenerationChangeTest, AMemberThatIsInNoGroupHasLeftUntilItSetsAModelAgain) {
  GroupWithLosses group(2, {});
  group.Step();
  Watch watch(group);
  group.Plan({0}, /*recovery=*/true);
  group.ShowAll();
  watch.Look();
  EXPECT_EQ(watch.seen(1), (std::vector<State>{State::kRunning, State::kLeft}));
  watch.Run();
  group.Plan({0, 1}, /*recovery=*/false);
  group.ShowAll();
  group.Begin(0);
  watch.Run();
  group.Join(1);
  watch.Look();
  EXPECT_EQ(watch.seen(1).back(), State::kRunning);
}

}  // namespace
}  // namespace covey::worker
