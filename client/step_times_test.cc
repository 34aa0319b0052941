// SPDX-License-Identifier: Apache-2.0
#include "client/step_times.h"

#include "gtest/gtest.h"

namespace covey::client {
namespace {

TEST(StepTimesTest, OneLineTellsTheSharesAndTheLargest) {
  EXPECT_EQ(DescribeStep(
                {.computation = 0.58e-3, .input = 0.05e-3, .group = 0.25e-3, .servers = 0.12e-3}),
            "a step takes 1.00 ms: computation 58 %, input 5 %, waiting for the group 25 %, "
            "waiting for servers 12 %; bottleneck: computation");
}

TEST(StepTimesTest, ABottleneckOtherThanComputationHasARemedy) {
  EXPECT_EQ(DescribeStep({.computation = 1, .group = 3}),
            "a step takes 4.00 s: computation 25 %, waiting for the group 75 %, waiting for "
            "servers 0 %; bottleneck: group (groups of fewer members wait less)");
  EXPECT_EQ(DescribeStep({.computation = 30e-6, .group = 30e-6, .servers = 40e-6}),
            "a step takes 100 us: computation 30 %, waiting for the group 30 %, waiting for "
            "servers 40 %; bottleneck: servers (a contract that pushes less often, as local:8, "
            "waits less)");
  EXPECT_EQ(DescribeStep({.computation = 5e-3, .input = 10.5e-3}),
            "a step takes 15.5 ms: computation 32 %, input 68 %, waiting for the group 0 %, "
            "waiting for servers 0 %; bottleneck: input (a thread that prepares the next samples "
            "hides it)");
}

TEST(StepTimesTest, TheBottleneckIsTheLargestPart) {
  EXPECT_EQ(BottleneckOf({.computation = 2, .input = 1, .group = 1, .servers = 1}), "computation");
  EXPECT_EQ(BottleneckOf({.computation = 1, .input = 2, .group = 1, .servers = 1}), "input");
  EXPECT_EQ(BottleneckOf({.computation = 1, .input = 1, .group = 2, .servers = 1}), "group");
  EXPECT_EQ(BottleneckOf({.computation = 1, .input = 1, .group = 1, .servers = 2}), "servers");
}

}  // namespace
}  // namespace covey::client
