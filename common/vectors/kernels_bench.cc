// SPDX-License-Identifier: Apache-2.0

// Speed of server functions on one core, of 16 M elements, in bytes moved per second.
// bazel run --config=opt //common/vectors:kernels_bench

#include <cstddef>
#include <vector>

#include "benchmark/benchmark.h"
#include "common/vectors/kernels.h"

namespace covey {
namespace {

constexpr size_t kElements = 16 << 20;

void CountBytes(benchmark::State& state, size_t per_element) {
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(kElements * per_element));
}

void BM_Dot(benchmark::State& state) {
  const std::vector<float> a(kElements, 0.5f);
  const std::vector<float> b(kElements, 2.0f);
  for (auto _ : state) benchmark::DoNotOptimize(Dot(a, b));
  CountBytes(state, 8);
}
BENCHMARK(BM_Dot)->Unit(benchmark::kMillisecond);

void BM_LargestMagnitude(benchmark::State& state) {
  const std::vector<float> a(kElements, 0.5f);
  for (auto _ : state) benchmark::DoNotOptimize(LargestMagnitude(a));
  CountBytes(state, 4);
}
BENCHMARK(BM_LargestMagnitude)->Unit(benchmark::kMillisecond);

void BM_AddScaled(benchmark::State& state) {
  const std::vector<float> x(kElements, 0.5f);
  std::vector<float> sum(kElements, 1.0f);
  for (auto _ : state) {
    AddScaled(0.25f, x, sum, sum);
    benchmark::DoNotOptimize(sum.data());
    benchmark::ClobberMemory();
  }
  CountBytes(state, 12);
}
BENCHMARK(BM_AddScaled)->Unit(benchmark::kMillisecond);

void BM_Scaled(benchmark::State& state) {
  std::vector<float> x(kElements, 1.0f);
  for (auto _ : state) {
    Scaled(1.0f, x, x);
    benchmark::DoNotOptimize(x.data());
    benchmark::ClobberMemory();
  }
  CountBytes(state, 8);
}
BENCHMARK(BM_Scaled)->Unit(benchmark::kMillisecond);

// The limit: a read of the same bytes by a kernel that does nothing else.
void BM_Sum(benchmark::State& state) {
  const std::vector<float> a(kElements, 0.5f);
  for (auto _ : state) benchmark::DoNotOptimize(Sum(a));
  CountBytes(state, 4);
}
BENCHMARK(BM_Sum)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace covey

BENCHMARK_MAIN();
