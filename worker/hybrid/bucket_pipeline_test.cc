// SPDX-License-Identifier: Apache-2.0
#include "worker/hybrid/bucket_pipeline.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "client/engine/request_engine.h"
#include "gtest/gtest.h"
#include "worker/hybrid/server_times.h"
#include "worker/testing/ring_fixture.h"
#include "worker/update/round_memory.h"

namespace covey::worker {
namespace {

using State = BucketPipeline::State;
using RunState = BucketRun::State;

constexpr size_t kElements = 4;
constexpr uint64_t kStepsOfARound = 9;

// An update that waits until the test lets it end.
class HeldUpdate : public PartUpdate {
 public:
  explicit HeldUpdate(std::optional<PartStep>& held) : held_(held) {}
  void Apply(absl::Time, PartStep step, Outbox&) override { held_ = std::move(step); }
  void Fetch(absl::Time, PartStep step, Outbox&) override { held_ = std::move(step); }

 private:
  std::optional<PartStep>& held_;
};

Bucket BucketOf(const std::vector<PartRange>& parts) {
  return {.pieces = {{.tensor = 0, .elements = {0, kElements}}},
          .element_count = kElements,
          .parts = parts};
}

// Two members with one bucket of one tensor each.
class Pair {
 public:
  explicit Pair(uint32_t lag = 0) : ring(2, 64, 1) {
    for (uint32_t rank = 0; rank < 2; ++rank) {
      clients_.push_back(std::make_unique<client::RequestEngine>(
          client::RequestEngine::Options{.incarnation = Incarnation(100 + rank)}, request_id_));
      links_.push_back(std::make_unique<ServerLink>(*clients_[rank], ring.communicator(rank)));
      pipelines.push_back(std::make_shared<BucketPipeline>(
          ring.communicator(rank), *links_[rank],
          BucketPipeline::Config{
              .bucket = BucketOf({{0, 2}, {2, 2}}),
              .name = "'tensor'",
              .lag = lag,
              .update = std::make_unique<HeldUpdate>(held_[rank]),
              .memory = RoundMemory(
                  kElements, {{.elements = {0, kElements}, .rounds = {.steps = kStepsOfARound}}})},
          BucketPipeline::Environment{
              .may_begin = [this](uint32_t, Step) { return steps_may_begin; }}));
      ring.communicator(rank).OnInterrupted([this, rank](absl::Time, Outbox&) {
        pipelines[rank]->Interrupt(ring.now());
        return pipelines[rank]->finished().value();
      });
      ring.KeepApart(rank);
    }
  }

  TensorRequest Request(uint32_t rank) {
    return {.gradient = gradients_[rank],
            .values = values_[rank],
            .samples = 1,
            .server_times = &server_times[rank],
            .step = &steps[rank],
            .done = [this, rank](absl::Time, const absl::Status& status, Outbox&) {
              outcomes[rank].push_back(status);
            }};
  }
  void Submit(uint32_t rank, uint64_t step) {
    pipelines[rank]->Submit(ring.now(), Step(step), Request(rank), ring.outbox(rank));
  }
  void Pull(uint32_t rank) { pipelines[rank]->Pull(ring.now(), Request(rank), ring.outbox(rank)); }
  // The update of the member's part ends.
  void EndUpdate(uint32_t rank) {
    const PartStep step = *std::exchange(held_[rank], std::nullopt);
    std::fill(step.values.begin(), step.values.end(), 1.0f);
    step.done(ring.now(), absl::OkStatus(), ring.outbox(rank));
  }
  bool IsUpdating(uint32_t rank) const { return held_[rank].has_value(); }
  // Member 1 dies, and member 0 is alone in the next generation.
  void Lose() {
    ring.Kill(1);
    proto::ClusterView view = Ring::ActiveView(2);
    view.set_epoch(2);
    view.mutable_nodes(1)->set_state(proto::Node::DEAD);
    view.mutable_groups(0)->set_generation(Ring::kGeneration + 1);
    view.mutable_groups(0)->set_recovery_generation(Ring::kGeneration + 1);
    view.mutable_groups(0)->mutable_members()->RemoveLast();
    ring.SetView(0, view);
    ring.Collect();
  }
  BucketPipeline::Rejoining Alone(uint64_t finished) {
    return {.bucket = BucketOf({{0, kElements}}),
            .update = std::make_unique<HeldUpdate>(held_[0]),
            .finished = Step(finished),
            .deadline = absl::InfiniteFuture()};
  }
  void Rejoin(BucketPipeline::Rejoining rejoining) {
    pipelines[0]->Rejoin(ring.now(), std::move(rejoining), ring.outbox(0));
    ring.Run();
  }
  // Both members go on after `finished`, and member 0 is to tell what it knows of LOCAL rounds.
  void RejoinWithDonor(uint64_t finished) {
    for (const uint32_t rank : {0u, 1u}) {
      pipelines[rank]->Rejoin(ring.now(),
                              {.bucket = BucketOf({{0, 2}, {2, 2}}),
                               .update = std::make_unique<HeldUpdate>(held_[rank]),
                               .finished = Step(finished),
                               .program_at = Step(1),
                               .agreed = Step(finished),
                               .pull = true,
                               .recovery_donor = 0,
                               .deadline = absl::InfiniteFuture()},
                              ring.outbox(rank));
    }
    ring.Run();
    for (const uint32_t rank : {0u, 1u}) EndUpdate(rank);
    ring.Run();
  }
  State state() const { return pipelines[0]->state(); }
  RunState run_state() const { return pipelines[0]->run()->state(); }
  // How much of the time from `from` until now member 0 waited for servers, as its last request
  // was told.
  absl::Duration ServersSince(absl::Time from) const {
    return server_times[0].Within(from, ring.now());
  }

  Ring ring;
  std::vector<std::shared_ptr<BucketPipeline>> pipelines;
  std::vector<absl::Status> outcomes[2];
  ServerTimes server_times[2];
  Step steps[2];
  bool steps_may_begin = true;

 private:
  uint64_t request_id_ = 1;
  std::vector<std::unique_ptr<client::RequestEngine>> clients_;
  std::vector<std::unique_ptr<ServerLink>> links_;
  std::optional<PartStep> held_[2];
  std::vector<float> gradients_[2] = {std::vector<float>(kElements, 1),
                                      std::vector<float>(kElements, 2)};
  std::vector<float> values_[2] = {std::vector<float>(kElements), std::vector<float>(kElements)};
};

// Both members have submitted step 1, and hold their updates.
void GoToUpdating(Pair& pair) {
  for (const uint32_t rank : {0u, 1u}) pair.Submit(rank, 1);
  pair.ring.Run();
  ASSERT_TRUE(pair.IsUpdating(0) && pair.IsUpdating(1));
}
// Member 0 has all values, but its own part is still on its way to member 1.
void GoToGathered(Pair& pair) {
  GoToUpdating(pair);
  pair.ring.Freeze(1);
  for (const uint32_t rank : {0u, 1u}) pair.EndUpdate(rank);
  pair.ring.Run();
  ASSERT_EQ(pair.run_state(), RunState::kGathered);
}

TEST(BucketPipelineTest, AStepGoesThroughItsStages) {
  Pair pair;
  EXPECT_EQ(pair.state(), State::kIdle);
  pair.Submit(0, 1);
  EXPECT_EQ(pair.state(), State::kRunning);
  EXPECT_EQ(pair.run_state(), RunState::kReducing);
  pair.Submit(1, 1);
  pair.ring.Run();
  EXPECT_EQ(pair.run_state(), RunState::kUpdating);
  pair.EndUpdate(0);
  pair.ring.Run();
  EXPECT_EQ(pair.run_state(), RunState::kGathering);
  EXPECT_TRUE(pair.outcomes[0].empty());
  pair.ring.Freeze(1);
  pair.EndUpdate(1);
  pair.ring.Run();
  pair.ring.Thaw(1);
  pair.ring.Run();
  EXPECT_EQ(pair.state(), State::kIdle);
  EXPECT_EQ(pair.pipelines[0]->finished(), Step(1));
  ASSERT_EQ(pair.outcomes[0].size(), 1u);
  EXPECT_TRUE(pair.outcomes[0][0].ok());
}

TEST(BucketPipelineTest, APullBeginsWithTheOwnPart) {
  Pair pair;
  pair.Pull(0);
  EXPECT_EQ(pair.state(), State::kRunning);
  EXPECT_EQ(pair.run_state(), RunState::kUpdating);
  EXPECT_TRUE(pair.pipelines[0]->pulling());
  pair.EndUpdate(0);
  EXPECT_EQ(pair.run_state(), RunState::kGathering);
  pair.Pull(1);
  pair.EndUpdate(1);
  pair.ring.Run();
  EXPECT_EQ(pair.state(), State::kIdle);
  EXPECT_EQ(pair.pipelines[0]->finished(), Step());
  EXPECT_EQ(pair.outcomes[0].size(), 1u);
}

TEST(BucketPipelineTest, AnInterruptedStepIsDoneAgainOnceItsUpdateHasEnded) {
  Pair pair;
  GoToUpdating(pair);
  pair.Lose();
  EXPECT_EQ(pair.state(), State::kInterrupted);
  EXPECT_EQ(pair.run_state(), RunState::kInterrupted);
  pair.Rejoin(pair.Alone(0));
  EXPECT_EQ(pair.state(), State::kRejoining) << "the update still uses the memory";
  pair.EndUpdate(0);
  pair.ring.Run();
  EXPECT_EQ(pair.state(), State::kRunning);
  EXPECT_EQ(pair.run_state(), RunState::kUpdating);
  EXPECT_TRUE(pair.outcomes[0].empty());
  pair.EndUpdate(0);
  pair.ring.Run();
  EXPECT_EQ(pair.state(), State::kIdle);
  EXPECT_EQ(pair.pipelines[0]->finished(), Step(1));
  ASSERT_EQ(pair.outcomes[0].size(), 1u);
  EXPECT_TRUE(pair.outcomes[0][0].ok());
}

TEST(BucketPipelineTest, AStepThatAnotherMemberHasFinishedIsPulled) {
  Pair pair;
  GoToUpdating(pair);
  pair.Lose();
  pair.EndUpdate(0);
  EXPECT_EQ(pair.run_state(), RunState::kStopped);
  BucketPipeline::Rejoining rejoining = pair.Alone(1);
  rejoining.pull = true;
  pair.Rejoin(std::move(rejoining));
  EXPECT_EQ(pair.state(), State::kRunning);
  EXPECT_TRUE(pair.pipelines[0]->pulling());
  EXPECT_TRUE(pair.outcomes[0].empty());
  pair.EndUpdate(0);
  pair.ring.Run();
  EXPECT_EQ(pair.state(), State::kIdle);
  EXPECT_EQ(pair.pipelines[0]->finished(), Step(1));
  ASSERT_EQ(pair.outcomes[0].size(), 1u);
  EXPECT_TRUE(pair.outcomes[0][0].ok());
}

TEST(BucketPipelineTest, AStepWhoseValuesAreThereEndsThoughItsGenerationDoes) {
  Pair pair;
  GoToGathered(pair);
  pair.Lose();
  EXPECT_EQ(pair.state(), State::kInterrupted);
  EXPECT_EQ(pair.run_state(), RunState::kGatheredInterrupted);
  EXPECT_EQ(pair.pipelines[0]->finished(), Step(1));
  pair.ring.Thaw(1);  // What is on its way to it is dropped.
  pair.Rejoin(pair.Alone(1));
  EXPECT_EQ(pair.state(), State::kIdle);
  ASSERT_EQ(pair.outcomes[0].size(), 1u);
  EXPECT_TRUE(pair.outcomes[0][0].ok());
}

TEST(BucketPipelineTest, ASecondInterruptionReplacesARejoinThatWaits) {
  Pair pair;
  GoToUpdating(pair);
  pair.Lose();
  pair.Rejoin(pair.Alone(1));
  EXPECT_EQ(pair.state(), State::kRejoining);
  pair.pipelines[0]->Interrupt(pair.ring.now());
  EXPECT_EQ(pair.state(), State::kInterrupted);
  pair.EndUpdate(0);
  EXPECT_EQ(pair.run_state(), RunState::kStopped);
  pair.Rejoin(pair.Alone(0));
  EXPECT_EQ(pair.run_state(), RunState::kUpdating) << "the second one says: done again";
}

TEST(BucketPipelineTest, TheDonorTellsTheOthersWhatItKnows) {
  Pair pair;
  GoToUpdating(pair);
  for (const uint32_t rank : {0u, 1u}) pair.EndUpdate(rank);
  pair.ring.Run();
  pair.RejoinWithDonor(/*finished=*/1);
  EXPECT_EQ(pair.state(), State::kIdle);
  for (const uint32_t rank : {0u, 1u})
    EXPECT_EQ(pair.pipelines[rank]->rounds()->learned(), Step(1));
}

TEST(BucketPipelineTest, WithoutANextGenerationEverythingEndsWithItsStatus) {
  Pair pair;
  GoToUpdating(pair);
  pair.Lose();
  pair.Submit(0, 2);
  pair.pipelines[0]->GiveUp(pair.ring.now(), absl::AbortedError("gone"), pair.ring.outbox(0));
  EXPECT_EQ(pair.state(), State::kClosed);
  EXPECT_EQ(pair.run_state(), RunState::kGivenUp);
  EXPECT_EQ(pair.outcomes[0].size(), 1u) << "what had not begun";
  pair.EndUpdate(0);
  pair.ring.Run();
  EXPECT_EQ(pair.pipelines[0]->run(), nullptr);
  ASSERT_EQ(pair.outcomes[0].size(), 2u);
  EXPECT_TRUE(absl::IsAborted(pair.outcomes[0][0]));
  EXPECT_TRUE(absl::IsUnavailable(pair.outcomes[0][1])) << "the first error is the interruption";
}

TEST(BucketPipelineTest, ALaggingSubmissionIsDoneAsSoonAsItsStepBegins) {
  Pair pair(/*lag=*/1);
  pair.Submit(0, 1);
  EXPECT_EQ(pair.outcomes[0].size(), 1u);
  EXPECT_EQ(pair.run_state(), RunState::kReducing);
  pair.Submit(0, 2);
  EXPECT_EQ(pair.outcomes[0].size(), 1u);
  EXPECT_EQ(pair.pipelines[0]->begun(), Step(1));
}

TEST(BucketPipelineTest, StepsThatTheGroupTookAsideDropTheSubmission) {
  Pair pair;
  pair.Submit(1, 1);
  pair.pipelines[0]->StepAside(pair.ring.now(), absl::InfiniteFuture(), pair.ring.outbox(0));
  pair.Submit(0, 1);
  EXPECT_TRUE(pair.outcomes[0].empty()) << "the values are not there";
  pair.ring.Run();
  for (const uint32_t rank : {0u, 1u}) pair.EndUpdate(rank);
  pair.ring.Run();
  EXPECT_EQ(pair.state(), State::kIdle);
  EXPECT_EQ(pair.outcomes[0].size(), 1u);
}

constexpr absl::Duration Ms(int64_t ms) { return absl::Milliseconds(ms); }

TEST(BucketPipelineTest, ASubmissionTellsItsStepAlsoWhenTheGroupRenumbersIt) {
  Pair pair;
  pair.steps_may_begin = false;
  pair.Submit(0, 1);
  EXPECT_EQ(pair.steps[0], Step(1));
  BucketPipeline::Rejoining next = pair.Alone(0);
  pair.pipelines[0]->Adopt(BucketOf({{0, 2}, {2, 2}}), std::move(next.update), Step(7));
  pair.steps_may_begin = true;
  pair.pipelines[0]->Advance(pair.ring.now(), pair.ring.outbox(0));
  EXPECT_EQ(pair.steps[0], Step(8));
}

TEST(BucketPipelineTimesTest, AStepWaitsForServersFromItsSumUntilItsNewValues) {
  Pair pair;
  const absl::Time begin = pair.ring.now();
  pair.Submit(0, 1);
  pair.ring.Pass(Ms(10));  // Member 1 is late.
  pair.Submit(1, 1);
  pair.ring.Run();
  pair.ring.Pass(Ms(20));
  pair.EndUpdate(0);
  pair.ring.Run();
  pair.ring.Pass(Ms(40));  // The servers of member 1 are late.
  pair.EndUpdate(1);
  pair.ring.Run();
  ASSERT_EQ(pair.outcomes[0].size(), 1u);
  EXPECT_EQ(pair.ServersSince(begin), Ms(20));
  EXPECT_EQ(pair.server_times[1].Within(begin, pair.ring.now()), Ms(60));
}

TEST(BucketPipelineTimesTest, APullWaitsForServersUntilTheOwnPartIsThere) {
  Pair pair;
  const absl::Time begin = pair.ring.now();
  for (const uint32_t rank : {0u, 1u}) pair.Pull(rank);
  pair.ring.Pass(Ms(20));
  pair.EndUpdate(0);
  pair.ring.Pass(Ms(10));
  pair.EndUpdate(1);
  pair.ring.Run();
  ASSERT_EQ(pair.outcomes[0].size(), 1u);
  EXPECT_EQ(pair.ServersSince(begin), Ms(20));
}

TEST(BucketPipelineTimesTest, ALaggingSubmissionWaitsForWhatTheStepBeforeWaitsFor) {
  Pair pair(/*lag=*/1);
  const absl::Time begin = pair.ring.now();
  for (const uint32_t rank : {0u, 1u}) pair.Submit(rank, 1);
  pair.ring.Run();
  pair.Submit(0, 2);
  pair.ring.Pass(Ms(20));
  pair.EndUpdate(0);
  pair.ring.Pass(Ms(10));
  EXPECT_EQ(pair.outcomes[0].size(), 1u);
  pair.EndUpdate(1);
  pair.ring.Run();
  ASSERT_EQ(pair.outcomes[0].size(), 2u);
  EXPECT_EQ(pair.ServersSince(begin), Ms(20));
}

TEST(BucketPipelineTimesTest, AnInterruptedStepWaitsForItsGroupUntilItIsDoneAgain) {
  Pair pair;
  const absl::Time begin = pair.ring.now();
  GoToUpdating(pair);
  pair.ring.Pass(Ms(10));
  pair.Lose();
  pair.ring.Pass(Ms(30));
  pair.Rejoin(pair.Alone(0));
  pair.ring.Pass(Ms(5));
  pair.EndUpdate(0);  // The servers' reply to the interrupted run.
  pair.ring.Run();
  pair.ring.Pass(Ms(15));
  pair.EndUpdate(0);
  pair.ring.Run();
  ASSERT_EQ(pair.outcomes[0].size(), 1u);
  EXPECT_EQ(pair.ServersSince(begin), Ms(10 + 15));
}

TEST(BucketPipelineTimesTest, InAGroupOfOneAllWaitingIsForServers) {
  Pair pair;
  pair.Lose();
  pair.Rejoin(pair.Alone(0));
  const absl::Time begin = pair.ring.now();
  pair.Submit(0, 1);
  pair.ring.Pass(Ms(20));
  pair.EndUpdate(0);
  pair.ring.Run();
  ASSERT_EQ(pair.outcomes[0].size(), 1u);
  pair.ring.Pass(Ms(1));  // Until the program's thread has woken up.
  EXPECT_EQ(pair.ServersSince(begin), Ms(20 + 1));
}

TEST(BucketPipelineTimesTest, AStepThatMayNotBeginWaitsForItsGroup) {
  Pair pair;
  GoToUpdating(pair);
  pair.ring.Pass(Ms(10));
  for (const uint32_t rank : {0u, 1u}) pair.EndUpdate(rank);
  pair.ring.Run();
  pair.steps_may_begin = false;
  const absl::Time begin = pair.ring.now();
  for (const uint32_t rank : {0u, 1u}) pair.Submit(rank, 2);
  pair.ring.Pass(Ms(30));
  pair.steps_may_begin = true;
  for (const uint32_t rank : {0u, 1u}) {
    pair.pipelines[rank]->Advance(pair.ring.now(), pair.ring.outbox(rank));
  }
  pair.ring.Run();
  pair.ring.Pass(Ms(20));
  for (const uint32_t rank : {0u, 1u}) pair.EndUpdate(rank);
  pair.ring.Run();
  ASSERT_EQ(pair.outcomes[0].size(), 2u);
  EXPECT_EQ(pair.ServersSince(begin), Ms(20));
}

TEST(BucketPipelineTimesTest, AStepThatTheGroupTookAsideWaitsAsAnyOther) {
  Pair pair;
  GoToUpdating(pair);
  pair.ring.Pass(Ms(10));
  for (const uint32_t rank : {0u, 1u}) pair.EndUpdate(rank);
  pair.ring.Run();
  const absl::Time begin = pair.ring.now();
  pair.pipelines[0]->StepAside(begin, absl::InfiniteFuture(), pair.ring.outbox(0));
  pair.Submit(0, 2);
  pair.ring.Pass(Ms(30));
  pair.Submit(1, 2);
  pair.ring.Run();
  pair.ring.Pass(Ms(20));
  for (const uint32_t rank : {0u, 1u}) pair.EndUpdate(rank);
  pair.ring.Run();
  ASSERT_EQ(pair.outcomes[0].size(), 2u);
  EXPECT_EQ(pair.ServersSince(begin), Ms(20));
}

// The tables of legal transitions agree with the diagrams: what a state can lead to.
template <typename S>
std::set<int> After(S from, bool (*is_legal)(S, S), int states) {
  std::set<int> after;
  for (int to = 0; to < states; ++to) {
    if (is_legal(from, static_cast<S>(to))) after.insert(to);
  }
  return after;
}
template <typename S>
std::set<int> Numbers(const std::vector<S>& states) {
  std::set<int> numbers;
  for (const S state : states) numbers.insert(static_cast<int>(state));
  return numbers;
}

TEST(BucketRunTest, LegalTransitionsAreThoseOfTheDiagram) {
  using S = RunState;
  const std::map<S, std::vector<S>> diagram = {
      {S::kNew, {S::kReducing, S::kUpdating, S::kRestoring}},
      {S::kRestoring, {S::kUpdating, S::kGathered, S::kInterrupted, S::kGivenUp, S::kOver}},
      {S::kReducing, {S::kUpdating, S::kClipping, S::kInterrupted, S::kGivenUp, S::kOver}},
      {S::kClipping, {S::kUpdating, S::kInterrupted, S::kGivenUp, S::kOver}},
      {S::kUpdating, {S::kGathering, S::kInterrupted, S::kGivenUp, S::kOver}},
      {S::kGathering, {S::kGathered, S::kInterrupted, S::kGivenUp, S::kOver}},
      {S::kGathered, {S::kGatheredInterrupted, S::kGivenUp, S::kOver}},
      {S::kInterrupted, {S::kStopped, S::kGivenUp}},
      {S::kGatheredInterrupted, {S::kGivenUp, S::kOver}},
      {S::kGivenUp, {S::kOver}},
      {S::kStopped, {}},
      {S::kOver, {}}};
  constexpr int kStates = static_cast<int>(S::kOver) + 1;
  ASSERT_EQ(diagram.size(), size_t{kStates});
  for (const auto& [from, to] : diagram) {
    EXPECT_EQ(After(from, &BucketRun::IsLegal, kStates), Numbers(to)) << static_cast<int>(from);
  }
}

TEST(BucketPipelineTest, LegalTransitionsAreThoseOfTheDiagram) {
  using S = State;
  const std::map<S, std::vector<S>> diagram = {
      {S::kIdle, {S::kRunning, S::kInterrupted, S::kRejoining, S::kClosed}},
      {S::kRunning, {S::kIdle, S::kInterrupted, S::kClosed}},
      {S::kInterrupted, {S::kRejoining, S::kIdle, S::kClosed}},
      {S::kRejoining, {S::kInterrupted, S::kIdle, S::kClosed}},
      {S::kClosed, {}}};
  constexpr int kStates = static_cast<int>(S::kClosed) + 1;
  ASSERT_EQ(diagram.size(), size_t{kStates});
  for (const auto& [from, to] : diagram) {
    EXPECT_EQ(After(from, &BucketPipeline::IsLegal, kStates), Numbers(to))
        << static_cast<int>(from);
  }
}

}  // namespace
}  // namespace covey::worker
