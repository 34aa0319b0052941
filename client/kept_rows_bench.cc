// SPDX-License-Identifier: Apache-2.0

// Speed of looking up kept rows, on one core, in keys per second: keys of a million rows of 16, of
// which few come often, and room for a tenth of the rows.
// bazel run --config=opt //client:kept_rows_bench

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/random/zipf_distribution.h"
#include "benchmark/benchmark.h"
#include "client/kept_rows.h"
#include "common/base/random.h"
#include "common/cluster/limits.h"

namespace covey::client {
namespace {

constexpr uint64_t kRows = 1'000'000;
constexpr size_t kWidth = 16;
constexpr size_t kBatchKeys = 10'000;

struct RandomBits {
  using result_type = uint64_t;
  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return ~uint64_t{0}; }
  uint64_t operator()() { return random.Next(); }

  Random random{1};
};

void BM_FindAndKeep(benchmark::State& state) {
  RandomBits bits;
  absl::zipf_distribution<uint64_t> rank(kRows - 1, 1.05, 1);
  std::vector<std::vector<uint64_t>> batches(500);
  for (std::vector<uint64_t>& keys : batches) {
    for (size_t i = 0; i < kBatchKeys; ++i) keys.push_back(rank(bits) * 387'420'489 % kRows);
  }
  KeptRows kept(kWidth, {kKeySlots}, {.rows = kRows / 10, .age = absl::InfiniteDuration()});
  std::vector<float> rows(kBatchKeys * kWidth);
  std::vector<uint32_t> left;
  std::vector<uint64_t> read_keys;
  const std::vector<float> read(kBatchKeys * kWidth);
  size_t next = 0;
  for (auto _ : state) {
    const std::vector<uint64_t>& keys = batches[next++ % batches.size()];
    left.clear();
    kept.Find(absl::UnixEpoch(), keys, rows, left);
    read_keys.clear();
    for (const uint32_t place : left) read_keys.push_back(keys[place]);
    kept.Keep(absl::UnixEpoch(), read_keys, std::span(read).first(read_keys.size() * kWidth),
              std::array{ShardVersion{}});
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kBatchKeys));
  state.counters["found"] = static_cast<double>(kept.counts().found) /
                            static_cast<double>(kept.counts().found + kept.counts().missing);
}
BENCHMARK(BM_FindAndKeep);

}  // namespace
}  // namespace covey::client

BENCHMARK_MAIN();
