// SPDX-License-Identifier: Apache-2.0

// Speed of splitting a mini-batch by shards, on one core, in keys per second.
// bazel run --config=opt //client/engine/requests:key_batch_bench

#include <cstddef>
#include <cstdint>
#include <vector>

#include "benchmark/benchmark.h"
#include "client/engine/requests/key_batch.h"
#include "common/base/random.h"
#include "common/table/key_slots.h"
#include "common/tensor/key_codec.h"

namespace covey {
namespace {

std::vector<uint64_t> Keys(const benchmark::State& state) {
  Random random(1);
  std::vector<uint64_t> keys(state.range(0));
  for (uint64_t& key : keys) {
    key = state.range(1) == 0 ? random.Next() : random.Below(state.range(1));
  }
  return keys;
}

const std::vector<uint64_t> kFourShards = {kKeySlots / 4, kKeySlots / 2, kKeySlots / 4 * 3,
                                           kKeySlots};

void BM_Assign(benchmark::State& state) {
  const std::vector<uint64_t> keys = Keys(state);
  KeyBatch batch;
  for (auto _ : state) batch.Assign(keys, kFourShards);
  state.SetItemsProcessed(state.iterations() * keys.size());
  state.counters["distinct"] = static_cast<double>(batch.distinct()) / keys.size();
}

void BM_EncodeAndDecode(benchmark::State& state) {
  KeyBatch batch;
  batch.Assign(Keys(state), kFourShards);
  std::vector<uint8_t> bytes;
  std::vector<uint64_t> decoded(batch.KeysOf(0).size());
  for (auto _ : state) {
    bytes.clear();
    const KeyEncoding encoding = EncodeKeys(batch.KeysOf(0), bytes);
    benchmark::DoNotOptimize(DecodeKeys(encoding, bytes, decoded).ok());
  }
  state.SetItemsProcessed(state.iterations() * decoded.size());
  state.counters["bytes_per_key"] = static_cast<double>(bytes.size()) / decoded.size();
}

void BM_SumRows(benchmark::State& state) {
  constexpr size_t kWidth = 16;
  const std::vector<uint64_t> keys = Keys(state);
  KeyBatch batch;
  batch.Assign(keys, kFourShards);
  const std::vector<float> rows(keys.size() * kWidth, 1.0f);
  std::vector<float> sums(keys.size() * kWidth);
  for (auto _ : state) {
    for (size_t shard = 0; shard < 4; ++shard) {
      batch.SumRows(shard, kWidth, rows,
                    std::span(sums).first(batch.KeysOf(shard).size() * kWidth));
    }
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * keys.size());
}

// Ids below a million, below 1,000 (most come often), and hashed ones.
void Sizes(benchmark::internal::Benchmark* bench) {
  for (const int64_t keys : {10'000, 100'000}) {
    for (const int64_t bound : {1'000'000, 1'000, 0}) bench->Args({keys, bound});
  }
}

BENCHMARK(BM_Assign)->Apply(Sizes);
BENCHMARK(BM_EncodeAndDecode)->Apply(Sizes);
BENCHMARK(BM_SumRows)->Apply(Sizes);

}  // namespace
}  // namespace covey

BENCHMARK_MAIN();
