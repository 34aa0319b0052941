// SPDX-License-Identifier: Apache-2.0
#include "scheduler/work/range_set.h"

#include <gtest/gtest.h>

#include <set>

#include "common/base/random.h"

namespace covey::scheduler {
namespace {

std::set<uint64_t> Numbers(const std::vector<RangeSet::Range>& ranges) {
  std::set<uint64_t> numbers;
  for (const RangeSet::Range& range : ranges) {
    for (uint64_t i = 0; i < range.count; ++i) numbers.insert(range.first + i);
  }
  return numbers;
}

TEST(RangeSetTest, NeighboursAreMerged) {
  RangeSet set;
  set.Add({0, 4});
  set.Add({8, 4});
  set.Add({4, 4});
  ASSERT_EQ(set.ranges().size(), 1u);
  EXPECT_EQ(set.LowestIn({0, 100}, 100).count, 12u);
  EXPECT_EQ(set.LowestIn({0, 100}, 5).count, 5u);
}

TEST(RangeSetTest, AgreesWithASetOfNumbers) {
  constexpr uint64_t kNumbers = 60;
  Random random(7);
  for (int run = 0; run < 200; ++run) {
    RangeSet set;
    std::set<uint64_t> reference;
    for (int step = 0; step < 30; ++step) {
      const RangeSet::Range range{random.Below(kNumbers), random.Below(12)};
      std::set<uint64_t> inside, outside;
      for (uint64_t n = range.first; n < range.first + range.count; ++n) {
        (reference.contains(n) ? inside : outside).insert(n);
      }
      EXPECT_EQ(Numbers(set.Missing(range)), outside);
      if (random.Below(2) == 0) {
        set.Add(range);
        reference.insert(outside.begin(), outside.end());
      } else {
        EXPECT_EQ(Numbers(set.Remove(range)), inside);
        for (const uint64_t n : inside) reference.erase(n);
      }
      ASSERT_EQ(Numbers(set.ranges()), reference);
      const auto lowest = reference.lower_bound(range.first);
      const bool is_any = lowest != reference.end() && *lowest < range.first + range.count;
      const RangeSet::Range found = set.LowestIn(range, 3);
      ASSERT_EQ(found.count > 0, is_any);
      if (is_any) {
        ASSERT_EQ(found.first, *lowest);
        ASSERT_LE(found.count, 3u);
        ASSERT_LE(found.first + found.count, range.first + range.count);
        for (const uint64_t n : Numbers({found})) ASSERT_TRUE(reference.contains(n));
      }
      ASSERT_EQ(set.size(), reference.size());
    }
  }
}

}  // namespace
}  // namespace covey::scheduler
