// SPDX-License-Identifier: Apache-2.0
#include "common/faults/fault_schedule.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace covey {
namespace {

Fault At(int at_s, int for_s, FaultKind kind, const std::string& target) {
  return {.at = absl::Seconds(at_s),
          .duration = for_s == 0 ? absl::InfiniteDuration() : absl::Seconds(for_s),
          .kind = kind,
          .target = target};
}

// "begin stop a"
std::vector<std::string> Texts(const std::vector<FaultSchedule::Action>& actions) {
  std::vector<std::string> texts;
  for (const auto& action : actions) {
    texts.push_back(std::string(action.begins ? "begin " : "end ") +
                    std::string(FaultKindName(action.fault.kind)) + " " + action.fault.target);
  }
  return texts;
}

TEST(FaultScheduleTest, ActionsComeOnceAndInOrderOfTime) {
  FaultSchedule schedule({At(5, 2, FaultKind::kStop, "a"), At(1, 0, FaultKind::kKill, "b"),
                          At(5, 0, FaultKind::kRestart, "c")});
  EXPECT_EQ(absl::Seconds(1), schedule.NextAt());
  EXPECT_TRUE(schedule.Due(absl::Milliseconds(999)).empty());
  EXPECT_EQ(std::vector<std::string>({"begin kill b"}), Texts(schedule.Due(absl::Seconds(1))));
  EXPECT_EQ(absl::Seconds(5), schedule.NextAt());
  EXPECT_EQ(std::vector<std::string>({"begin stop a", "begin restart c"}),
            Texts(schedule.Due(absl::Seconds(6))));
  EXPECT_FALSE(schedule.done());
  EXPECT_EQ(std::vector<std::string>({"end stop a"}), Texts(schedule.Due(absl::Seconds(60))));
  EXPECT_TRUE(schedule.done());
  EXPECT_EQ(absl::InfiniteDuration(), schedule.NextAt());
}

TEST(FaultScheduleTest, WhatEndsEndsBeforeWhatBeginsThen) {
  FaultSchedule schedule({At(2, 1, FaultKind::kKill, "a"), At(1, 1, FaultKind::kKill, "a")});
  EXPECT_EQ(std::vector<std::string>({"begin kill a", "end kill a", "begin kill a"}),
            Texts(schedule.Due(absl::Seconds(2))));
}

TEST(FaultScheduleTest, OverlappingFaultsEndWithTheLastOfThem) {
  FaultSchedule schedule({At(1, 4, FaultKind::kStop, "a"), At(2, 6, FaultKind::kStop, "a"),
                          At(2, 1, FaultKind::kStop, "b")});
  std::vector<bool> last;
  for (const auto& action : schedule.Due(absl::Seconds(100))) last.push_back(action.last);
  // a begins, a begins again, b begins, b ends, a ends for one, a ends for both.
  EXPECT_EQ(std::vector<bool>({true, false, true, true, false, true}), last);
}

TEST(FaultScheduleTest, KnowsWhatIsInForce) {
  FaultSchedule schedule({At(1, 4, FaultKind::kStop, "a"), At(2, 0, FaultKind::kIsolate, "b"),
                          At(2, 0, FaultKind::kRestart, "c")});
  schedule.Due(absl::Seconds(3));
  ASSERT_EQ(2u, schedule.InForce().size());
  EXPECT_EQ("a", schedule.InForce()[0].target);
  EXPECT_EQ("b", schedule.InForce()[1].target);
  schedule.Due(absl::Seconds(5));
  ASSERT_EQ(1u, schedule.InForce().size());
  EXPECT_EQ("b", schedule.InForce()[0].target);
}

}  // namespace
}  // namespace covey
