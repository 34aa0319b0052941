// SPDX-License-Identifier: Apache-2.0

// Speed of the kernels on the GPU, on 64 MiB arrays, in bytes moved per second.
// bazel run --config=opt --config=cuda //common/gpu:kernels_bench

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmark/benchmark.h"
#include "common/gpu/kernels.h"
#include "common/gpu/memory.h"

namespace covey {
namespace {

constexpr size_t kElements = 1 << 24;
constexpr int kCallsPerWait = 100;

// Times `update`, a function of four arrays: gradient, values and two slots.
template <typename Update>
void Measure(benchmark::State& state, int64_t bytes_per_element, const Update& update) {
  std::vector<gpu::Floats> arrays;
  for (const float value : {1e-3f, 1.0f, 0.5f, 0.5f}) {
    absl::StatusOr<gpu::Floats> array = gpu::Floats::CopyOf(std::vector<float>(kElements, value));
    if (!array.ok()) return state.SkipWithError(array.status().ToString().c_str());
    arrays.push_back(*std::move(array));
  }
  for (auto _ : state) {
    for (int i = 0; i < kCallsPerWait; ++i) {
      update(arrays[0].span(), arrays[1].span(), arrays[2].span(), arrays[3].span());
    }
    if (!gpu::Wait().ok()) return state.SkipWithError("the GPU failed");
  }
  const int64_t elements = state.iterations() * kCallsPerWait * int64_t{kElements};
  state.SetItemsProcessed(elements);
  state.SetBytesProcessed(elements * bytes_per_element);
}

void BM_GpuSgd(benchmark::State& state) {
  Measure(state, 12, [](auto gradient, auto values, auto, auto) {
    gpu::UpdateSgd({.learning_rate = 0.01f}, gradient, values, values);
  });
}

void BM_GpuAdam(benchmark::State& state) {
  const AdamScalars scalars = {.rate = 0.01f,
                               .epsilon = 1e-8f,
                               .beta1 = 0.9f,
                               .one_minus_beta1 = 0.1f,
                               .beta2 = 0.999f,
                               .one_minus_beta2 = 0.001f};
  Measure(state, 28, [&](auto gradient, auto values, auto mean, auto square) {
    gpu::UpdateAdam(scalars, gradient, values, values, InPlace(mean), InPlace(square));
  });
}

BENCHMARK(BM_GpuSgd)->UseRealTime();
BENCHMARK(BM_GpuAdam)->UseRealTime();

}  // namespace
}  // namespace covey

BENCHMARK_MAIN();
