// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/memory_limit.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace covey {
namespace {

TEST(MemoryLimit, IsNoMoreThanTheAddressSpace) {
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const uint64_t of_machine = MemoryLimit();
  EXPECT_GT(of_machine, 64u << 20);
  // This limit is below that of any machine, and the process keeps the memory that it has.
  rlimit less = before;
  less.rlim_cur = 48 << 20;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &less), 0);
  const uint64_t limited = MemoryLimit();
  setrlimit(RLIMIT_AS, &before);
  EXPECT_EQ(limited, 48u << 20);
  EXPECT_EQ(MemoryLimit(), of_machine);
}

}  // namespace
}  // namespace covey
