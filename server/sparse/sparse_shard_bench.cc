// SPDX-License-Identifier: Apache-2.0

// Speed of a sparse shard on one core, in rows per second: random keys in batches of 10,000.
// bazel run --config=opt //server/sparse:sparse_shard_bench

#include <time.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "common/base/random.h"
#include "server/sparse/sparse_shard.h"

namespace covey::server {
namespace {

constexpr size_t kBatch = 10'000;
constexpr size_t kWidth = 16;
constexpr int64_t kMillion = 1'000'000;

std::shared_ptr<SparseShard> Open(OptimizerKind kind, WireFormat type = WireFormat::kFloat32) {
  return SparseShard::Create({.slot_count = 65536,
                              .width = kWidth,
                              .type = type,
                              .initializer = {.kind = InitializerKind::kUniform, .a = -1, .b = 1},
                              .optimizer = {.kind = kind},
                              .learning_rate = {.base_rate = 0.01}})
      .value();
}

std::vector<uint64_t> Batch(Random& random, uint64_t keys) {
  std::vector<uint64_t> batch;
  while (batch.size() < kBatch) {
    for (size_t i = batch.size(); i < kBatch; ++i) batch.push_back(random.Below(keys));
    std::sort(batch.begin(), batch.end());
    batch.erase(std::unique(batch.begin(), batch.end()), batch.end());
  }
  return batch;
}

std::vector<std::vector<uint64_t>> Batches(uint64_t keys) {
  Random random(1);
  std::vector<std::vector<uint64_t>> batches;
  for (int i = 0; i < 200; ++i) batches.push_back(Batch(random, keys));
  return batches;
}

void FillWith(SparseShard& shard, uint64_t keys) {
  std::vector<uint64_t> some;
  const std::vector<float> gradient(kBatch * kWidth, 1e-3f);
  for (uint64_t key = 0; key < keys; key += kBatch) {
    some.clear();
    for (uint64_t i = key; i < std::min(key + kBatch, keys); ++i) some.push_back(i);
    (void)shard.Apply(some, std::span(gradient).first(some.size() * kWidth), 1);
  }
}

void BM_Pull(benchmark::State& state) {
  const uint64_t keys = state.range(0);
  const auto type = static_cast<WireFormat>(state.range(1));
  const auto shard = Open(OptimizerKind::kSgd, type);
  FillWith(*shard, keys);
  const auto batches = Batches(keys);
  std::vector<uint8_t> values(kBatch * shard->layout().value_bytes());
  size_t next = 0;
  for (auto _ : state) {
    shard->Read(batches[next++ % batches.size()], values);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * kBatch);
  state.counters["bytes_per_row"] = static_cast<double>(shard->bytes()) / shard->rows();
  state.SetLabel(WireFormatName(type));
}

void BM_Push(benchmark::State& state) {
  const uint64_t keys = state.range(0);
  const auto type = static_cast<WireFormat>(state.range(2));
  const auto shard = Open(static_cast<OptimizerKind>(state.range(1)), type);
  FillWith(*shard, keys);
  const auto batches = Batches(keys);
  const std::vector<float> gradient(kBatch * kWidth, 1e-3f);
  size_t next = 0;
  for (auto _ : state) {
    (void)shard->Apply(batches[next++ % batches.size()], gradient, 1);
  }
  state.SetItemsProcessed(state.iterations() * kBatch);
  state.counters["bytes_per_row"] = static_cast<double>(shard->bytes()) / shard->rows();
  state.SetLabel(std::string(OptimizerName(static_cast<OptimizerKind>(state.range(1)))) + " " +
                 WireFormatName(type));
}

// The same with lists of keys that the shard has seen before.
void BM_PullAgain(benchmark::State& state) {
  const uint64_t keys = state.range(0);
  const auto shard = Open(OptimizerKind::kSgd);
  FillWith(*shard, keys);
  const auto batches = Batches(keys);
  std::vector<RowPlaces> places(batches.size());
  std::vector<uint8_t> values(kBatch * kWidth * sizeof(float));
  for (size_t i = 0; i < batches.size(); ++i) shard->Read(batches[i], values, &places[i]);
  size_t next = 0;
  for (auto _ : state) {
    const size_t i = next++ % batches.size();
    shard->Read(batches[i], values, &places[i]);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * kBatch);
}

void BM_PushAgain(benchmark::State& state) {
  const uint64_t keys = state.range(0);
  const auto shard = Open(static_cast<OptimizerKind>(state.range(1)));
  FillWith(*shard, keys);
  const auto batches = Batches(keys);
  std::vector<RowPlaces> places(batches.size());
  std::vector<uint8_t> values(kBatch * kWidth * sizeof(float));
  for (size_t i = 0; i < batches.size(); ++i) shard->Read(batches[i], values, &places[i]);
  const std::vector<float> gradient(kBatch * kWidth, 1e-3f);
  size_t next = 0;
  for (auto _ : state) {
    const size_t i = next++ % batches.size();
    (void)shard->Apply(batches[i], gradient, 1, 1, {}, &places[i]);
  }
  state.SetItemsProcessed(state.iterations() * kBatch);
  state.SetLabel(std::string(OptimizerName(static_cast<OptimizerKind>(state.range(1)))));
}

// As training does: a pull of new keys, and the push of their gradients. Rows are counted once.
template <bool kRemembers>
void BM_PullThenPush(benchmark::State& state) {
  const uint64_t keys = state.range(0);
  const auto shard = Open(OptimizerKind::kRowwiseAdagrad);
  FillWith(*shard, keys);
  const auto batches = Batches(keys);
  std::vector<uint8_t> values(kBatch * kWidth * sizeof(float));
  const std::vector<float> gradient(kBatch * kWidth, 1e-3f);
  size_t next = 0;
  for (auto _ : state) {
    const std::vector<uint64_t>& batch = batches[next++ % batches.size()];
    RowPlaces places;
    RowPlaces* const remembered = kRemembers ? &places : nullptr;
    shard->Read(batch, values, remembered);
    (void)shard->Apply(batch, gradient, 1, 1, {}, remembered);
  }
  state.SetItemsProcessed(state.iterations() * kBatch);
}

// An update, and a read of its rows, in one request.
template <bool kRemembers>
void BM_PushThenRead(benchmark::State& state) {
  const uint64_t keys = state.range(0);
  const auto shard = Open(OptimizerKind::kRowwiseAdagrad);
  FillWith(*shard, keys);
  const auto batches = Batches(keys);
  std::vector<uint8_t> values(kBatch * kWidth * sizeof(float));
  const std::vector<float> gradient(kBatch * kWidth, 1e-3f);
  size_t next = 0;
  for (auto _ : state) {
    const std::vector<uint64_t>& batch = batches[next++ % batches.size()];
    RowPlaces places;
    RowPlaces* const remembered = kRemembers ? &places : nullptr;
    (void)shard->Apply(batch, gradient, 1, 1, {}, remembered);
    shard->Read(batch, values, remembered);
  }
  state.SetItemsProcessed(state.iterations() * kBatch);
}

// From empty.
void BM_Insert(benchmark::State& state) {
  for (auto _ : state) {
    const auto shard = Open(OptimizerKind::kSgd);
    FillWith(*shard, state.range(0));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

// Of this thread, so that other programs of the machine do not count.
double CpuMilliseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

// From 1 million rows to state.range(0): how long the updates of 1,000 new rows each take. Growth
// happens in them: pages split, the directory doubles, chunks are added.
void BM_Growth(benchmark::State& state) {
  constexpr size_t kNewRows = 1'000;
  const std::vector<float> gradient(kNewRows * kWidth, 1e-3f);
  std::vector<uint64_t> keys(kNewRows);
  for (auto _ : state) {
    const auto shard = Open(OptimizerKind::kSgd);
    FillWith(*shard, kMillion);
    std::vector<double> milliseconds;
    for (uint64_t key = kMillion; key < static_cast<uint64_t>(state.range(0)); key += kNewRows) {
      for (size_t i = 0; i < kNewRows; ++i) keys[i] = key + i;
      const double before = CpuMilliseconds();
      (void)shard->Apply(keys, gradient, 1);
      milliseconds.push_back(CpuMilliseconds() - before);
    }
    std::sort(milliseconds.begin(), milliseconds.end());
    state.counters["p50_ms"] = milliseconds[milliseconds.size() / 2];
    state.counters["p999_ms"] = milliseconds[milliseconds.size() * 999 / 1000];
    state.counters["max_ms"] = milliseconds.back();
    state.counters["bytes_per_row"] = static_cast<double>(shard->bytes()) / shard->rows();
  }
}

// What one core can do at best: a flat table of the same rows, open addressing at load 0.48,
// without growth, versions or a check of the keys.
struct FlatTable {
  struct Entry {
    uint64_t key;
    uint32_t row;
  };

  explicit FlatTable(uint64_t keys) : entries(1), values(keys * kWidth + kWidth) {
    while (entries.size() < keys * 2) entries.resize(entries.size() * 2);
    for (uint64_t key = 0; key < keys; ++key) {
      size_t i = Home(key);
      while (entries[i].row != 0) i = (i + 1) % entries.size();
      entries[i] = {.key = key, .row = static_cast<uint32_t>(key + 1)};
    }
  }
  size_t Home(uint64_t key) const { return MixBits(key) & (entries.size() - 1); }
  float* Find(uint64_t key) {
    size_t i = Home(key);
    while (entries[i].row != 0 && entries[i].key != key) i = (i + 1) & (entries.size() - 1);
    return values.data() + entries[i].row * kWidth;
  }
  template <typename Use>
  void ForEach(const std::vector<uint64_t>& keys, const Use& use) {
    float* found[16];
    for (size_t i = 0; i < keys.size() + 16; ++i) {
      if (i >= 16) use(i - 16, found[i % 16]);
      if (i + 24 < keys.size()) __builtin_prefetch(&entries[Home(keys[i + 24])]);
      if (i < keys.size()) __builtin_prefetch(found[i % 16] = Find(keys[i]), 1);
    }
  }

  std::vector<Entry> entries;
  std::vector<float> values;
};

void BM_FlatPull(benchmark::State& state) {
  FlatTable table(state.range(0));
  const auto batches = Batches(state.range(0));
  std::vector<float> values(kBatch * kWidth);
  size_t next = 0;
  for (auto _ : state) {
    table.ForEach(batches[next++ % batches.size()], [&](size_t i, const float* row) {
      std::copy_n(row, kWidth, values.data() + i * kWidth);
    });
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * kBatch);
}

void BM_FlatPush(benchmark::State& state) {
  FlatTable table(state.range(0));
  const auto batches = Batches(state.range(0));
  const std::vector<float> gradient(kBatch * kWidth, 1e-3f);
  size_t next = 0;
  for (auto _ : state) {
    table.ForEach(batches[next++ % batches.size()], [&](size_t i, float* row) {
      for (size_t c = 0; c < kWidth; ++c) row[c] -= 0.01f * gradient[i * kWidth + c];
    });
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * kBatch);
}

constexpr int64_t kSgd = static_cast<int64_t>(OptimizerKind::kSgd);
constexpr int64_t kRowwiseAdagrad = static_cast<int64_t>(OptimizerKind::kRowwiseAdagrad);
constexpr int64_t kFloat32 = static_cast<int64_t>(WireFormat::kFloat32);
constexpr int64_t kBfloat16 = static_cast<int64_t>(WireFormat::kBfloat16);
constexpr int64_t kFloat16 = static_cast<int64_t>(WireFormat::kFloat16);

BENCHMARK(BM_FlatPull)->Arg(kMillion)->Arg(4 * kMillion);
BENCHMARK(BM_Pull)->ArgsProduct({{kMillion, 4 * kMillion}, {kFloat32, kBfloat16, kFloat16}});
BENCHMARK(BM_FlatPush)->Arg(kMillion)->Arg(4 * kMillion);
BENCHMARK(BM_Push)
    ->ArgsProduct({{kMillion, 4 * kMillion}, {kSgd}, {kFloat32, kBfloat16, kFloat16}})
    ->ArgsProduct({{kMillion},
                   {kRowwiseAdagrad, static_cast<int64_t>(OptimizerKind::kAdagrad),
                    static_cast<int64_t>(OptimizerKind::kAdam),
                    static_cast<int64_t>(OptimizerKind::kFtrl)},
                   {kFloat32, kBfloat16, kFloat16}});
BENCHMARK(BM_PullAgain)->Arg(kMillion)->Arg(4 * kMillion);
BENCHMARK(BM_PushAgain)
    ->Args({kMillion, kSgd})
    ->Args({4 * kMillion, kSgd})
    ->Args({kMillion, kRowwiseAdagrad});
BENCHMARK(BM_PullThenPush<false>)->Arg(kMillion)->Arg(4 * kMillion);
BENCHMARK(BM_PullThenPush<true>)->Arg(kMillion)->Arg(4 * kMillion);
BENCHMARK(BM_PushThenRead<false>)->Arg(kMillion)->Arg(4 * kMillion);
BENCHMARK(BM_PushThenRead<true>)->Arg(kMillion)->Arg(4 * kMillion);
BENCHMARK(BM_Insert)->Arg(kMillion)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Growth)->Arg(64 * kMillion)->Iterations(1)->Unit(benchmark::kSecond);

}  // namespace
}  // namespace covey::server

BENCHMARK_MAIN();
