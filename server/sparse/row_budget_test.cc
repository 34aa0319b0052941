// SPDX-License-Identifier: Apache-2.0

// Ten times more keys than rows_max: what a shard counts, and the memory that it takes.

#include <malloc.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <numeric>
#include <vector>

#include "common/base/log.h"
#include "common/table/key_slots.h"
#include "gtest/gtest.h"
#include "server/sparse/eviction_plan.h"
#include "server/sparse/sparse_shard.h"

namespace covey::server {
namespace {

using Keys = std::vector<uint64_t>;

constexpr uint64_t kRowsMax = 200'000;
constexpr uint64_t kKeys = 10 * kRowsMax;
constexpr uint64_t kKeysPerUpdate = 20'000;
constexpr size_t kWidth = 16;

// What the process keeps ready for the next rows, of any shard (server/table/row_memory.h).
constexpr double kReserve = 8 << 20;

uint64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  uint64_t pages = 0;
  file >> pages >> pages;
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// As the comment at SparseShard says.
double ComputedBytes(const SparseShard& shard) {
  const double row = static_cast<double>(shard.layout().row_bytes()) + 24;
  return static_cast<double>(kRowsMax) * row + 40 * static_cast<double>(shard.pending());
}

struct Policy {
  bool evicts = false;
  EvictBy by = EvictBy::kAge;
  uint32_t admit_after = 1;
};

class RowBudgetTest : public testing::TestWithParam<Policy> {};

INSTANTIATE_TEST_SUITE_P(
    Policies, RowBudgetTest,
    testing::Values(Policy{}, Policy{.admit_after = 3}, Policy{.evicts = true},
                    Policy{.evicts = true, .admit_after = 3},
                    Policy{.evicts = true, .by = EvictBy::kCount},
                    Policy{.evicts = true, .by = EvictBy::kCount, .admit_after = 3},
                    Policy{.evicts = true, .by = EvictBy::kNorm},
                    Policy{.evicts = true, .by = EvictBy::kNorm, .admit_after = 3}));

TEST_P(RowBudgetTest, CountersAreExactAndMemoryIsAsComputed) {
  Keys keys(kKeysPerUpdate);
  const std::vector<float> gradient(kKeysPerUpdate * kWidth, -1);
  // Memory of the shards of other policies stays with malloc otherwise, and would not be new here.
  malloc_trim(0);
  const uint64_t before = ResidentBytes();
  const auto shard = SparseShard::Create({.first_slot = 0,
                                          .slot_count = kKeySlots,
                                          .width = kWidth,
                                          .rows_max = kRowsMax,
                                          .evicts = GetParam().evicts,
                                          .evict_by = GetParam().by,
                                          .admission = {.after = GetParam().admit_after},
                                          .optimizer = {.kind = OptimizerKind::kAdagrad},
                                          .learning_rate = {.base_rate = 1}})
                         .value();
  uint64_t refused = 0;
  uint64_t resident_once_full = 0;
  for (uint64_t pushed = 0; pushed < kKeys; pushed += kKeysPerUpdate) {
    std::iota(keys.begin(), keys.end(), pushed);
    // Each key comes as often as makes its row.
    for (uint32_t update = 0; update < GetParam().admit_after; ++update) {
      refused += shard->Apply(keys, gradient, 1, 1, PlanEvictions(*shard, keys)).value();
    }
    ASSERT_LE(shard->rows(), kRowsMax);
    if (pushed == 2 * kRowsMax) resident_once_full = ResidentBytes() - before;
  }
  EXPECT_EQ(shard->rows() + shard->totals().evicted + shard->totals().refused, kKeys);
  EXPECT_EQ(shard->totals().refused, refused);
  EXPECT_EQ(GetParam().evicts ? shard->totals().refused : shard->totals().evicted, 0u);
  EXPECT_TRUE(GetParam().evicts || shard->rows() == kRowsMax);
  const auto resident = static_cast<double>(ResidentBytes() - before);
  LogInfo("row_budget", {{"resident", resident}, {"computed", ComputedBytes(*shard)}});
  EXPECT_LE(resident, 1.15 * ComputedBytes(*shard) + kReserve);
  EXPECT_GE(resident, 0.8 * ComputedBytes(*shard));
  // Rows that went make room for as many: where nothing waits, memory has not grown since.
  if (shard->pending() == 0) {
    EXPECT_LE(resident, 1.05 * static_cast<double>(resident_once_full) + kReserve);
  }
}

}  // namespace
}  // namespace covey::server
