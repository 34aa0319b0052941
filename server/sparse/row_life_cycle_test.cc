// SPDX-License-Identifier: Apache-2.0

// Which rows a shard makes, and which go.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "common/base/random.h"
#include "common/table/key_slots.h"
#include "gtest/gtest.h"
#include "server/sparse/eviction_plan.h"
#include "server/sparse/sparse_cut.h"
#include "server/sparse/sparse_shard.h"
#include "server/testing/row_floats.h"

namespace covey::server {
namespace {

using Floats = std::vector<float>;
using Keys = std::vector<uint64_t>;

// The values of a row are the negative sum of its gradients.
SparseShardConfig Config(uint64_t rows_max = kRowsPerShardMax) {
  return {.first_slot = 0,
          .slot_count = kKeySlots,
          .width = 1,
          .rows_max = rows_max,
          .learning_rate = {.base_rate = 1}};
}

std::shared_ptr<SparseShard> Open(const SparseShardConfig& config) {
  return SparseShard::Create(config).value();
}

Floats Read(const SparseShard& shard, const Keys& keys) { return ReadRows(shard, keys); }

// One update that adds 1 to each row. Plans evictions first, as the head does.
uint64_t Add(SparseShard& shard, const Keys& keys) {
  return shard.Apply(keys, Floats(keys.size(), -1), 1, 1, PlanEvictions(shard, keys)).value();
}

Keys Range(uint64_t first, uint64_t count) {
  Keys keys(count);
  for (uint64_t i = 0; i < count; ++i) keys[i] = first + i;
  return keys;
}

Keys Draw(Random& random, size_t count, uint64_t below) {
  Keys keys(count);
  for (uint64_t& key : keys) key = random.Below(below);
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

uint64_t RowsAmong(const SparseShard& shard, const Keys& keys) { return shard.Foresee(keys).rows; }

TEST(AdmissionTest, TheNthUpdateThatHoldsAKeyMakesItsRow) {
  SparseShardConfig config = Config();
  config.admission.after = 3;
  const auto shard = Open(config);
  Add(*shard, {3, 7});
  Add(*shard, {7});
  EXPECT_EQ(shard->rows(), 0);
  EXPECT_EQ(shard->pending(), 2);
  EXPECT_EQ(Read(*shard, {3, 7}), (Floats{0, 0}));
  Add(*shard, {3, 7});
  EXPECT_EQ(shard->rows(), 1);
  EXPECT_EQ(shard->pending(), 1);
  EXPECT_EQ(Read(*shard, {3, 7}), (Floats{0, 1}));
  // The row's own updates count from its first one.
  shard->ForEachRow([](const SparseRow& row) { EXPECT_EQ(row.updates, 1); });
  Add(*shard, {3, 7});
  EXPECT_EQ(Read(*shard, {3, 7}), (Floats{1, 2}));
  EXPECT_EQ(shard->pending(), 0);
}

TEST(AdmissionTest, ReadsDoNotCount) {
  SparseShardConfig config = Config();
  config.admission.after = 2;
  const auto shard = Open(config);
  Add(*shard, {3});
  for (int i = 0; i < 5; ++i) Read(*shard, {3, 4});
  Add(*shard, {4});
  EXPECT_EQ(shard->rows(), 0);
}

TEST(AdmissionTest, ByChanceSomeUpdatesCount) {
  SparseShardConfig config = Config();
  config.admission.probability = 0.25;
  const auto shard = Open(config);
  const Keys keys = Range(0, 10'000);
  Add(*shard, keys);
  EXPECT_NEAR(static_cast<double>(shard->rows()), 2'500, 200);
  EXPECT_EQ(shard->pending(), 0);
  // Each update draws again, for the keys that have no row.
  Add(*shard, keys);
  EXPECT_NEAR(static_cast<double>(shard->rows()), 4'375, 200);
  config.admission.after = 2;
  const auto both = Open(config);
  Add(*both, keys);
  EXPECT_EQ(both->rows(), 0);
  EXPECT_NEAR(static_cast<double>(both->pending()), 2'500, 200);
  Add(*both, keys);
  EXPECT_NEAR(static_cast<double>(both->rows()), 625, 100);
}

TEST(AdmissionTest, OtherRowsOfAnUpdateGetTheirOwnGradients) {
  SparseShardConfig config = Config();
  config.admission.after = 2;
  const auto shard = Open(config);
  Add(*shard, {1, 5, 9});
  // Keys 3 and 7 are new.
  ASSERT_TRUE(shard->Apply(Keys{1, 3, 5, 7, 9}, Floats{-1, -2, -3, -4, -5}, 1).ok());
  EXPECT_EQ(Read(*shard, {1, 3, 5, 7, 9}), (Floats{1, 0, 3, 0, 5}));
}

TEST(AdmissionTest, AFullShardAdmitsWhatWaitsOnceThereIsRoom) {
  SparseShardConfig config = Config(2);
  config.admission.after = 2;
  const auto shard = Open(config);
  Add(*shard, {1, 2, 3});
  EXPECT_EQ(Add(*shard, {1, 2, 3}), 1);
  EXPECT_EQ(shard->totals().refused, 1);
  EXPECT_EQ(shard->rows(), 2);
  EXPECT_EQ(shard->pending(), 1);
  ASSERT_TRUE(shard->Erase(1));
  EXPECT_EQ(Add(*shard, {3}), 0);
  EXPECT_EQ(Read(*shard, {3}), Floats{1});
}

TEST(AdmissionTest, KeysThatWaitHaveABudget) {
  SparseShardConfig config = Config(100);
  config.admission.after = 2;
  const auto shard = Open(config);
  // Without evictions further keys do not count.
  ASSERT_TRUE(shard->Apply(Range(0, 1'000), Floats(1'000, -1), 1).ok());
  EXPECT_EQ(shard->pending(), 400);
  // With them, the oldest make room, so that new keys can be admitted.
  for (uint64_t round = 1; round < 50; ++round) {
    Add(*shard, Range(round * 1'000, 50));
    ASSERT_LE(shard->pending(), 400);
    Add(*shard, Range(round * 1'000, 2));
    ASSERT_EQ(shard->rows(), round * 2);
  }
}

TEST(EvictionTest, TheBudgetIsNeverPassedAndNewRowsFindRoom) {
  for (const EvictBy by : {EvictBy::kAge, EvictBy::kCount, EvictBy::kNorm}) {
    for (const uint64_t rows_max : {1, 7, 100, 3'000, 20'000}) {
      SparseShardConfig config = Config(rows_max);
      config.evicts = true;
      config.evict_by = by;
      const auto shard = Open(config);
      Random random(rows_max);
      for (int update = 0; update < 200; ++update) {
        const Keys keys = Draw(random, 1 + random.Below(rows_max), rows_max * 10);
        ASSERT_EQ(Add(*shard, keys), 0) << rows_max << " update " << update;
        ASSERT_LE(shard->rows(), rows_max);
        ASSERT_EQ(RowsAmong(*shard, keys), keys.size());
      }
      EXPECT_GT(shard->totals().evicted, rows_max);
      EXPECT_EQ(shard->totals().refused, 0);
      EXPECT_GT(shard->rows(), rows_max * 3 / 4);
    }
  }
}

TEST(EvictionTest, AnUpdateThatHoldsMoreThanTheShardMayDoesNotPassTheBudget) {
  SparseShardConfig config = Config(100);
  config.evicts = true;
  const auto shard = Open(config);
  Add(*shard, Range(0, 50));
  EXPECT_EQ(Add(*shard, Range(0, 300)), 200);
  EXPECT_EQ(shard->rows(), 100);
  EXPECT_EQ(Read(*shard, {7}), Floats{2});
}

// A shard of 1,000 rows of 1,000, of which those of `first` hundred keys are worst by `by`.
std::shared_ptr<SparseShard> FullShard(EvictBy by) {
  SparseShardConfig config = Config(1'000);
  config.evicts = true;
  config.evict_by = by;
  const auto shard = Open(config);
  const Keys worst = Range(0, 100);
  const Keys others = Range(100, 900);
  const auto add = [&](const Keys& keys, float gradient) {
    EXPECT_TRUE(shard->Apply(keys, Floats(keys.size(), gradient), 1).ok());
  };
  switch (by) {
    case EvictBy::kAge:
      add(worst, 9);
      add(worst, 9);
      add(others, 1);
      break;
    case EvictBy::kCount:
      add(others, 1);
      add(others, 1);
      add(worst, 9);
      break;
    case EvictBy::kNorm:
      add(others, 2);
      add(worst, -1);
      add(worst, 0);
      break;
  }
  return shard;
}

TEST(EvictionTest, TheOldestTheRarestOrTheSmallestGoFirst) {
  for (const EvictBy by : {EvictBy::kAge, EvictBy::kCount, EvictBy::kNorm}) {
    const auto shard = FullShard(by);
    ASSERT_EQ(shard->rows(), 1'000);
    Add(*shard, {5'000});
    EXPECT_EQ(shard->totals().evicted, 100);
    EXPECT_EQ(RowsAmong(*shard, Range(0, 100)), 0);
    EXPECT_EQ(RowsAmong(*shard, Range(100, 900)), 900);
    EXPECT_EQ(Read(*shard, {5'000}), Floats{1});
  }
}

TEST(EvictionTest, RowsOfTheUpdateStay) {
  const auto shard = FullShard(EvictBy::kAge);
  Keys keys = Range(0, 50);
  keys.push_back(5'000);
  Add(*shard, keys);
  EXPECT_EQ(RowsAmong(*shard, keys), keys.size());
  EXPECT_EQ(Read(*shard, {7}), Floats{-17});
}

TEST(EvictionTest, AnEvictedRowBeginsAgain) {
  SparseShardConfig config = Config(10);
  config.evicts = true;
  config.initializer = {.kind = InitializerKind::kConstant, .a = 3};
  config.optimizer = {.kind = OptimizerKind::kAdam};
  const auto shard = Open(config);
  const auto fresh = Open(config);
  Add(*shard, {1});
  Add(*shard, {1});
  for (uint64_t key = 10; key < 30; ++key) Add(*shard, {key});
  EXPECT_EQ(Read(*shard, {1}), Floats{3});
  Add(*shard, {1});
  // The learning rate is constant, and Adam counts the row's own updates.
  Add(*fresh, {1});
  EXPECT_EQ(Read(*shard, {1}), Read(*fresh, {1}));
}

TEST(EvictionTest, MemoryOfEvictedRowsIsUsedAgain) {
  SparseShardConfig config = Config(50'000);
  config.evicts = true;
  config.admission.after = 2;
  const auto shard = Open(config);
  size_t bytes = 0;
  for (uint64_t round = 0; round < 20; ++round) {
    for (uint64_t part = 0; part < 5; ++part) {
      const Keys keys = Range((round * 5 + part) * 10'000, 10'000);
      Add(*shard, keys);
      Add(*shard, keys);
    }
    if (round == 2) bytes = shard->bytes();
  }
  EXPECT_GT(shard->totals().evicted, 900'000);
  // The index may have taken another 2 MiB for pages, where hashes happened to be dense. Without
  // reuse there would be 7 MB of rows more.
  EXPECT_LE(shard->bytes(), bytes * 1.05 + (2 << 20));
}

TEST(EvictionTest, AgesAreRightAcrossTheEndOfTheStamps) {
  SparseShardConfig config = Config(100);
  config.evicts = true;
  const auto shard = Open(config);
  shard->RestoreCounts((uint64_t{1} << 32) - 50, 1);
  for (uint64_t key = 0; key < 100; ++key) Add(*shard, {key});
  // Rows 0 .. 49 have stamps up to 2^32 - 1, the others begin from 0 again.
  EXPECT_EQ(RowsAmong(*shard, Range(90, 10)), 10);
  EXPECT_EQ(RowsAmong(*shard, Range(0, 5)), 0);
  shard->ForEachRow(
      [&](const SparseRow& row) { EXPECT_GE(row.key, 100 - shard->rows()) << "the oldest went"; });
}

// Ages are differences of 32 bits; one of more than 31 bits is no negative one.
TEST(EvictionTest, RowsThatBillionsOfUpdatesDidNotHoldAreTheOldest) {
  SparseShardConfig config = Config(100);
  config.evicts = true;
  const auto shard = Open(config);
  const auto add_at = [&](uint64_t version, uint64_t first) {
    shard->RestoreCounts(version, 1);
    Add(*shard, Range(first, 30));
  };
  add_at(10, 0);
  add_at(uint64_t{1} << 30, 100);
  add_at((uint64_t{1} << 31) + 100, 200);
  add_at(uint64_t{3} << 30, 300);
  EXPECT_EQ(shard->totals().evicted, 20);
  EXPECT_EQ(RowsAmong(*shard, Range(0, 30)), 10);
  EXPECT_EQ(RowsAmong(*shard, Range(100, 30)), 30);
  EXPECT_EQ(RowsAmong(*shard, Range(200, 30)), 30);
}

// Of a shard with several parts, so that evictions concern ranges.
TEST(EvictionTest, PartsCoverTheShardAndAreAboutEqual) {
  SparseShardConfig config = Config();
  config.first_slot = 10'000;
  config.slot_count = 30'000;
  const auto shard = Open(config);
  uint64_t next = uint64_t{10'000} << 48;
  for (uint64_t part = 0; part < 8; ++part) {
    const auto [first, last] = shard->PartOf(part, 8);
    EXPECT_EQ(first, next);
    next = last + 1;
  }
  EXPECT_EQ(next, uint64_t{40'000} << 48);
  EXPECT_EQ(Open(Config())->PartOf(0, 1), std::pair(uint64_t{0}, ~uint64_t{0}));
}

TEST(EvictionTest, ALargeShardGivesUpOnePartAtATime) {
  SparseShardConfig config = Config(1'000'000);
  config.evicts = true;
  const auto shard = Open(config);
  Add(*shard, Range(0, 940'000));
  Add(*shard, Range(940'000, 1'000));
  const Keys few = Range(2'000'000, 10'000);
  const std::vector<Eviction> planned = PlanEvictions(*shard, few);
  ASSERT_EQ(planned.size(), 1);
  Add(*shard, few);
  // A quarter of the shard gave up what makes it 90 % full.
  EXPECT_NEAR(static_cast<double>(shard->totals().evicted), 41'000 / 4.0, 3'000);
  // More than a part can give.
  const Keys many = Range(3'000'000, 100'000);
  EXPECT_GT(PlanEvictions(*shard, many).size(), 1);
  EXPECT_EQ(Add(*shard, many), 0);
}

TEST(EvictionTest, AnEvictionOfAnotherRangeTakesNothing) {
  SparseShardConfig config = Config();
  config.first_slot = 10'000;
  config.slot_count = 30'000;
  const auto shard = Open(config);
  Keys keys;
  for (uint64_t key = 0; keys.size() < 500; ++key) {
    if (shard->Holds(key)) keys.push_back(key);
  }
  Add(*shard, keys);
  const auto evict = [&](uint64_t first, uint64_t last) {
    const Eviction all{.first = first, .last = last, .score = ~uint32_t{0}, .tie = ~uint64_t{0}};
    EXPECT_TRUE(shard->Apply({}, {}, 1, 1, std::vector<Eviction>{all}).ok());
    return shard->totals().evicted;
  };
  EXPECT_EQ(evict(0, (uint64_t{10'000} << 48) - 1), 0);
  EXPECT_EQ(evict(uint64_t{40'000} << 48, ~uint64_t{0}), 0);
  EXPECT_EQ(evict(uint64_t{50'000} << 48, uint64_t{20'000} << 48), 0);
  EXPECT_EQ(evict(0, ~uint64_t{0}), 500);
}

// Random updates of a shard and of a copy that is filled from it on the way, with the evictions
// that the first one plans: their digests stay equal, also of cuts that are read while rows change.
TEST(LifeCycleTest, ACopyGoesOnAlike) {
  for (const EvictBy by : {EvictBy::kAge, EvictBy::kCount, EvictBy::kNorm}) {
    SparseShardConfig config = Config(300);
    config.width = 3;
    config.evicts = true;
    config.evict_by = by;
    config.admission = {.after = 3, .probability = 0.7};
    config.optimizer = {.kind = OptimizerKind::kAdagrad};
    const auto shard = Open(config);
    std::shared_ptr<SparseShard> copy;
    Random random(7);
    const auto update = [&](bool of_both) {
      const Keys keys = Draw(random, 80, 1'000);
      Floats gradient(keys.size() * 3);
      for (float& x : gradient) x = static_cast<float>(random.Uniform() - 0.5);
      const std::vector<Eviction> planned = PlanEvictions(*shard, keys);
      ASSERT_TRUE(shard->Apply(keys, gradient, 1, 1, planned).ok());
      if (!of_both) return;
      ASSERT_TRUE(copy->Apply(keys, gradient, 1, 1, planned).ok());
    };
    for (int round = 0; round < 20; ++round) {
      for (int i = 0; i < 10; ++i) update(false);
      const uint64_t digest = shard->Digest();
      const auto cut = shard->Cut();
      copy = Open(config);
      copy->RestoreCounts(cut->version(), cut->samples());
      copy->RestoreTotals(cut->totals());
      uint64_t rows = 0;
      uint64_t pending = 0;
      while (rows < cut->rows()) {
        rows += copy->RestoreRows(cut->Next(500)).value();
        update(false);
      }
      EXPECT_EQ(cut->Next(500).rows, 0);
      while (pending < cut->pending()) {
        pending += copy->RestorePending(cut->NextPending(300)).value();
        update(false);
      }
      EXPECT_EQ(cut->NextPending(300).rows, 0);
      ASSERT_EQ(copy->Digest(), digest);
      EXPECT_EQ(copy->pending(), cut->pending());
    }
    EXPECT_GT(shard->totals().evicted, 1'000);
    // From here on they go on together.
    copy = Open(config);
    const auto cut = shard->Cut();
    copy->RestoreCounts(cut->version(), cut->samples());
    ASSERT_TRUE(copy->RestoreRows(cut->Next(1 << 20)).ok());
    ASSERT_TRUE(copy->RestorePending(cut->NextPending(1 << 20)).ok());
    for (int i = 0; i < 50; ++i) {
      update(true);
      ASSERT_EQ(copy->Digest(), shard->Digest());
    }
  }
}

// Against a map.
TEST(LifeCycleTest, RowsAreThoseOfAModel) {
  SparseShardConfig config = Config(200);
  config.evicts = true;
  config.admission.after = 3;
  const auto shard = Open(config);
  std::map<uint64_t, float> rows;
  std::map<uint64_t, uint32_t> waiting;
  Random random(3);
  for (int update = 0; update < 3'000; ++update) {
    const Keys keys = Draw(random, 30, 600);
    Add(*shard, keys);
    // What has gone is known from the shard; what remains must be as the model says.
    for (auto row = rows.begin(); row != rows.end();) {
      row = RowsAmong(*shard, {row->first}) == 0 ? rows.erase(row) : std::next(row);
    }
    for (const uint64_t key : keys) {
      if (const auto row = rows.find(key); row != rows.end()) {
        ++row->second;
      } else if (++waiting[key] == 3) {
        waiting.erase(key);
        rows[key] = 1;
      }
    }
    ASSERT_EQ(shard->rows(), rows.size()) << update;
    ASSERT_EQ(shard->pending(), waiting.size());
  }
  for (const auto& [key, value] : rows) EXPECT_EQ(Read(*shard, {key}), Floats{value});
  EXPECT_GT(shard->totals().evicted, 1'000);
}

}  // namespace
}  // namespace covey::server
