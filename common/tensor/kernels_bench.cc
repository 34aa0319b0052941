// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "benchmark/benchmark.h"
#include "common/tensor/codec.h"
#include "common/tensor/kernels.h"
#include "common/tensor/wire_format.h"

namespace covey {
namespace {

constexpr int64_t kCached = 1 << 16;
constexpr int64_t kShard = 1 << 18;  // 1 MiB
constexpr int64_t kBeyondCache = 1 << 24;

std::vector<float> SomeValues(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 1000) / 1000 - 0.5f;
  return values;
}

void BM_AddInto(benchmark::State& state) {
  std::vector<float> sum = SomeValues(state.range(0));
  const std::vector<float> x = SomeValues(state.range(0));
  for (auto _ : state) {
    AddInto(sum, x);
    benchmark::DoNotOptimize(sum.data());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_AddInto)->Arg(kCached)->Arg(kBeyondCache);

// What Add saves: the copy that AddInto needs before it.
void BM_CopyAndAddInto(benchmark::State& state) {
  const std::vector<float> a = SomeValues(state.range(0));
  const std::vector<float> b = SomeValues(state.range(0));
  std::vector<float> sum(state.range(0));
  for (auto _ : state) {
    std::copy(a.begin(), a.end(), sum.begin());
    AddInto(sum, b);
    benchmark::DoNotOptimize(sum.data());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_CopyAndAddInto)->Arg(kCached)->Arg(kShard)->Arg(kBeyondCache);

void BM_Add(benchmark::State& state) {
  const std::vector<float> a = SomeValues(state.range(0));
  const std::vector<float> b = SomeValues(state.range(0));
  std::vector<float> sum(state.range(0));
  for (auto _ : state) {
    Add(a, b, sum);
    benchmark::DoNotOptimize(sum.data());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_Add)->Arg(kCached)->Arg(kShard)->Arg(kBeyondCache);

// Arguments: format, elements. Items are elements.
enum class Way { kEncode, kFeedback, kDecode, kDecodeAndAdd };

void Run(benchmark::State& state, Way way) {
  const auto format = static_cast<WireFormat>(state.range(0));
  const auto count = static_cast<size_t>(state.range(1));
  std::vector<float> values = SomeValues(count);
  std::vector<float> residual(count);
  std::vector<uint8_t> bytes(EncodedBytes(format, count));
  Encode(format, values, bytes);
  for (auto _ : state) {
    switch (way) {
      case Way::kEncode:
        Encode(format, values, bytes);
        break;
      case Way::kFeedback:
        EncodeWithFeedback(format, values, residual, bytes);
        break;
      case Way::kDecode:
        Decode(format, bytes, values);
        break;
      case Way::kDecodeAndAdd:
        DecodeAndAdd(format, bytes, values);
        break;
    }
    benchmark::DoNotOptimize(bytes.data());
    benchmark::DoNotOptimize(values.data());
  }
  state.SetLabel(WireFormatName(format));
  state.SetItemsProcessed(state.iterations() * state.range(1));
}

void BM_Encode(benchmark::State& state) { Run(state, Way::kEncode); }
void BM_EncodeWithFeedback(benchmark::State& state) { Run(state, Way::kFeedback); }
void BM_Decode(benchmark::State& state) { Run(state, Way::kDecode); }
void BM_DecodeAndAdd(benchmark::State& state) { Run(state, Way::kDecodeAndAdd); }
BENCHMARK(BM_Encode)->ArgsProduct({{0, 1, 2, 3}, {kCached, kBeyondCache}});
BENCHMARK(BM_EncodeWithFeedback)->ArgsProduct({{1, 2, 3}, {kCached, kBeyondCache}});
BENCHMARK(BM_Decode)->ArgsProduct({{0, 1, 2, 3}, {kCached, kBeyondCache}});
BENCHMARK(BM_DecodeAndAdd)->ArgsProduct({{0, 1, 2, 3}, {kCached, kBeyondCache}});

}  // namespace
}  // namespace covey

BENCHMARK_MAIN();
