// SPDX-License-Identifier: Apache-2.0
#include "worker/data/step_numbers.h"

#include "gtest/gtest.h"

namespace covey::worker {
namespace {

TEST(StepNumbersTest, FinishedIsTheNewestStepWhoseValuesHaveArrived) {
  StepNumbers steps;
  EXPECT_EQ(steps.finished(), Step());
  steps.Begin();
  EXPECT_EQ(steps.finished(), Step());
  steps.Set(1, Step(41));
  EXPECT_EQ(steps.finished(), Step(41));
  steps.Begin();
  EXPECT_EQ(steps.finished(), Step(41));
  steps.Set(2, Step(44));
  EXPECT_EQ(steps.finished(), Step(44)) << "the program was late";
}

}  // namespace
}  // namespace covey::worker
