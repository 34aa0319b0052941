// SPDX-License-Identifier: Apache-2.0
#include "worker/data/step_numbers.h"

#include "gtest/gtest.h"

namespace covey::worker {
namespace {

TEST(StepNumbersTest, KnowsTheNumbersOfTheNewestSteps) {
  StepNumbers steps;
  steps.Begin();
  EXPECT_EQ(steps.Of(1), Step());
  steps.Set(1, Step(41));
  EXPECT_EQ(steps.Of(1), Step(41));
  for (uint64_t i = 0; i < StepNumbers::kKept; ++i) steps.Begin();
  EXPECT_EQ(steps.Of(1), Step(41)) << "no other step has taken its place";
  steps.Set(steps.begun(), Step(44));
  EXPECT_EQ(steps.Of(1), Step());
  EXPECT_EQ(steps.Of(steps.begun()), Step(44));
}

}  // namespace
}  // namespace covey::worker
