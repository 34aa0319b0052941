// SPDX-License-Identifier: Apache-2.0
// The compiler passes over a precompiled header whose flags do not fit, and says nothing: the build
// only takes half as long again.
#include <gtest/gtest.h>

#include "tools/bazel/precompiled_product.h"

namespace covey {
namespace {

#ifdef COVEY_PRECOMPILED
constexpr bool kTestCodeIsPrecompiled = true;
#else
constexpr bool kTestCodeIsPrecompiled = false;
#endif

constexpr char kRemedy[] =
    "the flags in tools/bazel/precompiled.bzl differ from those of the build; "
    "`g++ -Winvalid-pch` names the difference";

TEST(PrecompiledTest, ProductCode) { EXPECT_TRUE(ProductCodeIsPrecompiled()) << kRemedy; }

TEST(PrecompiledTest, TestCode) { EXPECT_TRUE(kTestCodeIsPrecompiled) << kRemedy; }

}  // namespace
}  // namespace covey
