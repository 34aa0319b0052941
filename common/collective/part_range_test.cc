// SPDX-License-Identifier: Apache-2.0
#include "common/collective/part_range.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace covey {
namespace {

TEST(PartRangeTest, EvenPartsCoverTheTensor) {
  for (const uint32_t size : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 23, 64}) {
    for (const size_t count : {0, 1, 2, 7, 8, 9, 1000}) {
      const std::vector<PartRange> parts = EvenParts(count, size);
      ASSERT_EQ(parts.size(), size);
      size_t next = 0;
      for (const PartRange& part : parts) {
        EXPECT_EQ(part.first, next);
        EXPECT_LE(part.count, count / size + 1);
        EXPECT_GE(part.count, count / size);
        next += part.count;
      }
      EXPECT_EQ(next, count);
    }
  }
}

}  // namespace
}  // namespace covey
