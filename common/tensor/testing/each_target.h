// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "hwy/targets.h"

namespace covey {

// A fixture whose tests (TEST_P) run once for each instruction set that kernels are compiled for
// and this processor has. So kernels that are tested with it give the same bits with each.
class EachTargetTest : public testing::TestWithParam<int64_t> {
 public:
  // The instruction sets, the baseline among them.
  static std::vector<int64_t> Targets() {
    std::vector<int64_t> targets;
    for (int64_t rest = (hwy::SupportedTargets() | HWY_STATIC_TARGET) & HWY_TARGETS; rest != 0;
         rest &= rest - 1) {
      targets.push_back(rest & -rest);
    }
    return targets;
  }
  static std::string Name(const testing::TestParamInfo<int64_t>& info) {
    return hwy::TargetName(info.param);
  }

 protected:
  EachTargetTest() { hwy::SetSupportedTargetsForTest(GetParam()); }
  ~EachTargetTest() override { hwy::SetSupportedTargetsForTest(0); }
};

}  // namespace covey

#define COVEY_FOR_EACH_TARGET(Fixture)                                                            \
  INSTANTIATE_TEST_SUITE_P(Targets, Fixture, testing::ValuesIn(covey::EachTargetTest::Targets()), \
                           covey::EachTargetTest::Name)
