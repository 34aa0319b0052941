// SPDX-License-Identifier: Apache-2.0
#include "scheduler/groups/group_experience.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

const absl::Time kNow = absl::UnixEpoch() + absl::Hours(5);

ThroughputParameters After(const GroupExperience& experience, absl::Duration later = {}) {
  ThroughputParameters model;
  experience.AddTo(kNow + later, model);
  return model;
}

TEST(GroupExperienceTest, KeepsTheNewestFitOfEachNumberForAnHour) {
  GroupExperience experience;
  EXPECT_THAT(After(experience).fits, IsEmpty());
  experience.NoteGroups(kNow, 2, 50, 200);
  experience.NoteGroups(kNow + absl::Minutes(1), 1, 90, 100);
  experience.NoteGroups(kNow + absl::Minutes(2), 2, 100, 200);
  EXPECT_THAT(After(experience, absl::Minutes(61)).fits, ElementsAre(Pair(1, 0.9), Pair(2, 0.5)));
  EXPECT_THAT(After(experience, absl::Minutes(62)).fits, ElementsAre(Pair(2, 0.5)));
  EXPECT_THAT(After(experience, absl::Minutes(63)).fits, IsEmpty());
}

TEST(GroupExperienceTest, WhatIsNotKnownIsNoFit) {
  GroupExperience experience;
  experience.NoteGroups(kNow, 0, 0, 0);
  experience.NoteGroups(kNow, 1, 0, 100);
  experience.NoteGroups(kNow, 2, 100, 0);
  EXPECT_THAT(After(experience).fits, IsEmpty());
}

TEST(GroupExperienceTest, ABatchThatDoesNotGrowWithTheGroupIsFixed) {
  GroupExperience experience;
  experience.NoteSamples({{4, 64}});
  EXPECT_EQ(After(experience).group_samples_per_step, 0);
  experience.NoteSamples({{2, 60}});
  EXPECT_EQ(After(experience).group_samples_per_step, 62);
  // It has grown with the group.
  experience.NoteSamples({{2, 32}});
  EXPECT_EQ(After(experience).group_samples_per_step, 0);
}

}  // namespace
}  // namespace covey::scheduler
