// SPDX-License-Identifier: Apache-2.0
#include "common/tensor/testing/each_target.h"

// Compiles this file once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/tensor/testing/each_target_test.cc"
#include "hwy/foreach_target.h"
// Chooses the widest that the processor has.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace covey {
namespace {
namespace HWY_NAMESPACE {

int64_t Target() { return HWY_TARGET; }

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace covey
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace covey {
namespace {

HWY_EXPORT(Target);
COVEY_FOR_EACH_TARGET(EachTargetTest);

TEST_P(EachTargetTest, RunsTheCodeOfItsTarget) {
  EXPECT_EQ(HWY_DYNAMIC_DISPATCH(Target)(), GetParam());
}

TEST(TargetsTest, HoldTheBaselineAndWhatTheProcessorHas) {
  const std::vector<int64_t> targets = EachTargetTest::Targets();
  EXPECT_EQ(targets.back(), HWY_STATIC_TARGET);
  EXPECT_EQ(targets.front(), HWY_DYNAMIC_DISPATCH(Target)());
#if defined(__x86_64__)
  EXPECT_EQ(targets.size() > 1, __builtin_cpu_supports("avx2") != 0);
#endif
}

}  // namespace
}  // namespace covey
#endif  // HWY_ONCE
