// SPDX-License-Identifier: Apache-2.0
#include "worker/hybrid/bucket_consensus.h"

#include <vector>

#include "gtest/gtest.h"

namespace covey::worker {
namespace {

MemberProgress At(uint64_t finished, uint64_t pulls = 1, bool waits_for_pull = false) {
  return {
      .buckets = {{.finished = Step(finished), .pulls = pulls, .waits_for_pull = waits_for_pull}}};
}
MemberProgress Knowing(uint64_t learned) {
  MemberProgress progress = At(learned);
  progress.buckets[0].learned = Step(learned);
  return progress;
}

TEST(BucketConsensusTest, MembersAtTheSamePlaceNeedNoPull) {
  const BucketConsensus consensus =
      AgreeOnBucket(std::vector<MemberProgress>{At(5, 2), At(5, 2)}, 0, Step(4));
  EXPECT_EQ(consensus.finished, Step(5));
  EXPECT_EQ(consensus.pulls, 2u);
  EXPECT_TRUE(consensus.all_equal);
  EXPECT_EQ(consensus.recovery_donor, std::nullopt);
}

TEST(BucketConsensusTest, TheNewestStepAndMostPullsCountAndAnyDifferenceMeansAPull) {
  const std::vector<std::vector<MemberProgress>> different = {
      {At(5), At(6)}, {At(6, 1), At(6, 3)}, {At(6), At(6, 1, true)}, {At(6), {}}};
  for (const std::vector<MemberProgress>& members : different) {
    const BucketConsensus consensus = AgreeOnBucket(members, 0, Step());
    EXPECT_EQ(consensus.finished, Step(6));
    EXPECT_FALSE(consensus.all_equal);
  }
  EXPECT_EQ(AgreeOnBucket(different[1], 0, Step()).pulls, 3u);
}

TEST(BucketConsensusTest, StepsOfOthersBeforeTheGroupCountAsFinished) {
  const BucketConsensus consensus =
      AgreeOnBucket(std::vector<MemberProgress>{At(5), At(5)}, 0, Step(9));
  EXPECT_EQ(consensus.finished, Step(9));
  EXPECT_FALSE(consensus.all_equal);
}

TEST(BucketConsensusTest, TheFirstOfThoseThatKnowMostIsTheDonor) {
  EXPECT_EQ(AgreeOnBucket(std::vector<MemberProgress>{At(3), Knowing(2), Knowing(3), Knowing(3)}, 0,
                          Step())
                .recovery_donor,
            2u);
  // Knowing of step 0, after the first pull, is more than nothing.
  EXPECT_EQ(AgreeOnBucket(std::vector<MemberProgress>{At(3), Knowing(0)}, 0, Step()).recovery_donor,
            1u);
}

TEST(RejoinPlanTest, AnInterruptedStepIsDoneAgainUnlessAMemberHasFinishedIt) {
  const RejoinInput interrupted{.begun = Step(7), .interrupted_step = true, .submitted = Step(8)};
  RejoinInput input = interrupted;
  input.finished = Step(6);
  EXPECT_TRUE(PlanRejoin(input).redo);
  EXPECT_EQ(PlanRejoin(input).begun, Step(7));
  EXPECT_EQ(PlanRejoin(input).submitted, Step(8));
  input.finished = Step(7);
  EXPECT_FALSE(PlanRejoin(input).redo);
  EXPECT_EQ(PlanRejoin(input).begun, Step(7));
  input.interrupted_step = false;
  input.finished = Step(6);
  EXPECT_FALSE(PlanRejoin(input).redo);
}

TEST(RejoinPlanTest, SubmissionsOfAMovedMemberStayAsFarAhead) {
  const RejoinInput input{.begun = Step(7),
                          .submitted = Step(9),
                          .finished = Step(20),
                          .program_at = Step(7),
                          .agreed = Step(20)};
  EXPECT_EQ(PlanRejoin(input).begun, Step(20));
  EXPECT_EQ(PlanRejoin(input).submitted, Step(22));
}

}  // namespace
}  // namespace covey::worker
