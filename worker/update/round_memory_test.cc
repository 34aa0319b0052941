// SPDX-License-Identifier: Apache-2.0
#include "worker/update/round_memory.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::worker {
namespace {

using ::testing::ElementsAre;

constexpr uint64_t kSamples = 6;

std::vector<float> Of(std::span<const float> values) { return {values.begin(), values.end()}; }

TEST(RoundMemoryTest, ARoundStartsWhereTheOneBeforeHasEnded) {
  RoundMemory memory(2, {{.elements = {0, 2}, .rounds = {.steps = 2}}});
  EXPECT_TRUE(memory.empty());
  memory.TakeFetch(std::vector<float>{10, 20});
  memory.TakeStep(Step(1), std::vector<float>{11, 22}, kSamples);
  RoundMemory::Round round = memory.At({0, 2});
  EXPECT_THAT(Of(round.start), ElementsAre(10, 20));
  EXPECT_THAT(Of(round.values), ElementsAre(11, 22));
  EXPECT_EQ(round.samples, kSamples);
  memory.TakeStep(Step(2), std::vector<float>{12, 24}, kSamples);
  round = memory.At({1, 1});
  EXPECT_THAT(Of(round.start), ElementsAre(24));
  EXPECT_EQ(round.samples, 0u);
  EXPECT_EQ(round.all_samples, 2 * kSamples);
  EXPECT_FALSE(round.pushed);
}

TEST(RoundMemoryTest, AFetchKeepsWhatWasLearnedSinceTheLastPush) {
  RoundMemory memory(1, {{.elements = {0, 1}, .rounds = {.steps = 4}}});
  memory.TakeFetch(std::vector<float>{10});
  memory.TakeStep(Step(1), std::vector<float>{13}, kSamples);
  // The servers' value is 50 now.
  memory.TakeFetch(std::vector<float>{53});
  EXPECT_THAT(Of(memory.At({0, 1}).start), ElementsAre(50));
  EXPECT_EQ(memory.At({0, 1}).samples, kSamples);
}

TEST(RoundMemoryTest, APushOnItsWayIsKnownUntilItsAnswerIsTakenIn) {
  RoundMemory memory(1, {{.elements = {0, 1}, .rounds = {.steps = 4, .overlap = 2}}});
  memory.TakeFetch(std::vector<float>{10});
  for (const uint64_t step : {1, 2, 3, 4}) {
    memory.TakeStep(Step(step), std::vector<float>{10 + static_cast<float>(step)}, kSamples);
  }
  memory.TakeStep(Step(5), std::vector<float>{15}, kSamples);
  const auto pushed = memory.At({0, 1}).pushed;
  ASSERT_TRUE(pushed);
  EXPECT_EQ(pushed->step, Step(4));
  EXPECT_THAT(Of(pushed->start), ElementsAre(10));
  EXPECT_THAT(Of(pushed->values), ElementsAre(14));
  EXPECT_EQ(pushed->samples, 4 * kSamples);
  // 100 from the servers, plus two steps; the change of the first of them is known.
  memory.TakeStep(Step(6), std::vector<float>{102}, kSamples);
  const RoundMemory::Round round = memory.At({0, 1});
  EXPECT_FALSE(round.pushed);
  EXPECT_THAT(Of(round.start), ElementsAre(101));
  EXPECT_EQ(round.samples, 2 * kSamples);
}

TEST(RoundMemoryTest, TablesOfABucketHaveRoundsOfTheirOwn) {
  RoundMemory memory(3, {{.elements = {0, 1}, .rounds = {.steps = 2}},
                         {.elements = {1, 2}, .rounds = {.steps = 2, .offset = 1}}});
  memory.TakeFetch(std::vector<float>{1, 1, 1});
  memory.TakeStep(Step(1), std::vector<float>{2, 2, 2}, kSamples);
  EXPECT_THAT(Of(memory.At({0, 1}).start), ElementsAre(1));
  EXPECT_THAT(Of(memory.At({1, 2}).start), ElementsAre(2, 2));
  EXPECT_EQ(memory.At({0, 1}).samples, kSamples);
  EXPECT_EQ(memory.At({2, 1}).samples, 0u);
}

TEST(RoundMemoryTest, AStepOfNoExamplesCountsAsNone) {
  RoundMemory memory(1, {{.elements = {0, 1}, .rounds = {.steps = 2}}});
  memory.TakeFetch(std::vector<float>{1});
  memory.TakeStep(Step(1), std::vector<float>{1}, 0);
  EXPECT_EQ(memory.At({0, 1}).samples, 0u);
  EXPECT_EQ(memory.learned(), Step(1));
}

TEST(RoundMemoryTest, AStepThatIsLostEndsItsRoundAllTheSame) {
  RoundMemory memory(1, {{.elements = {0, 1}, .rounds = {.steps = 2}}});
  memory.TakeFetch(std::vector<float>{1});
  memory.TakeStep(Step(1), std::vector<float>{3}, kSamples);
  memory.Skip(Step(2));
  EXPECT_THAT(Of(memory.At({0, 1}).start), ElementsAre(3));
  EXPECT_EQ(memory.At({0, 1}).samples, 0u);
  EXPECT_EQ(memory.learned(), Step(1));
}

TEST(RoundMemoryTest, NothingIsPushedOfStepsBeforeTheFirstValues) {
  RoundMemory memory(1, {{.elements = {0, 1}, .rounds = {.steps = 2, .overlap = 1}}});
  memory.TakeFetch(std::vector<float>{1});
  memory.Clear();
  memory.SkipAll(Step(), Step(2));
  memory.TakeFetch(std::vector<float>{5});
  EXPECT_FALSE(memory.At({0, 1}).pushed);
  memory.TakeStep(Step(3), std::vector<float>{6}, kSamples);
  EXPECT_THAT(Of(memory.At({0, 1}).start), ElementsAre(5));
}

TEST(RoundMemoryTest, AnotherMemberKnowsTheSameOnceItIsTold) {
  const std::vector<RoundMemory::Piece> pieces = {
      {.elements = {0, 2}, .rounds = {.steps = 4, .overlap = 1}}};
  RoundMemory memory(2, pieces);
  memory.TakeFetch(std::vector<float>{1, 2});
  for (uint64_t step = 1; step <= 4; ++step) {
    memory.TakeStep(Step(step), std::vector<float>{3, 4}, uint64_t{1} << 40);
  }
  std::vector<float> told(memory.saved_values());
  memory.SaveValues(told);
  RoundMemory other(2, pieces);
  ASSERT_EQ(other.saved_values(), told.size());
  EXPECT_EQ(other.Load(told, Buffer()).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(other.empty());
  ASSERT_TRUE(other.Load(told, memory.SaveProgress()).ok());
  EXPECT_FALSE(other.empty());
  EXPECT_EQ(other.learned(), Step(4));
  const RoundMemory::Round round = other.At({0, 2});
  ASSERT_TRUE(round.pushed);
  EXPECT_EQ(round.pushed->step, Step(4));
  EXPECT_EQ(round.pushed->samples, uint64_t{4} << 40);
  EXPECT_THAT(Of(round.pushed->start), ElementsAre(1, 2));
  EXPECT_THAT(Of(round.pushed->values), ElementsAre(3, 4));
  EXPECT_THAT(Of(round.values), ElementsAre(3, 4));
  other.Clear();
  EXPECT_TRUE(other.empty());
}

}  // namespace
}  // namespace covey::worker
