// SPDX-License-Identifier: Apache-2.0

// Speed of the optimizer kernels on one core, in bytes moved per second and elements per second.
// bazel run --config=opt //common/optimizer:kernels_bench

#include <cstddef>
#include <cstdint>
#include <vector>

#include "benchmark/benchmark.h"
#include "common/optimizer/kernels.h"
#include "common/optimizer/trust_kernels.h"

namespace covey {
namespace {

// 16 Ki elements per array stay in a core's own cache; 16 Mi (64 MiB) come from beyond it.
constexpr int64_t kCached = 1 << 14;
constexpr int64_t kBeyondCache = 1 << 24;

struct Arrays {
  explicit Arrays(const benchmark::State& state)
      : gradient(state.range(0), 1e-3f),
        values(state.range(0), 1.0f),
        other_values(state.range(0), 0.0f),
        slot(state.range(0), 0.5f),
        other_slot(state.range(0), 0.5f) {}

  std::vector<float> gradient, values, other_values, slot, other_slot;
};

void Report(benchmark::State& state, int64_t bytes_per_element) {
  const int64_t elements = state.iterations() * state.range(0);
  state.SetItemsProcessed(elements);
  state.SetBytesProcessed(elements * bytes_per_element);
}

void BM_Sgd(benchmark::State& state) {
  Arrays a(state);
  for (auto _ : state) {
    UpdateSgd({.learning_rate = 0.01f}, a.gradient, a.values, a.values);
    benchmark::ClobberMemory();
  }
  Report(state, 12);
}

void BM_SgdIntoOtherBuffer(benchmark::State& state) {
  Arrays a(state);
  for (auto _ : state) {
    UpdateSgd({.learning_rate = 0.01f}, a.gradient, a.values, a.other_values);
    benchmark::ClobberMemory();
  }
  Report(state, 16);
}

void BM_Momentum(benchmark::State& state) {
  Arrays a(state);
  for (auto _ : state) {
    UpdateMomentum({.learning_rate = 0.01f, .momentum = 0.9f}, a.gradient, a.values, a.values,
                   InPlace(a.slot));
    benchmark::ClobberMemory();
  }
  Report(state, 20);
}

void BM_Nesterov(benchmark::State& state) {
  Arrays a(state);
  for (auto _ : state) {
    UpdateNesterov({.learning_rate = 0.01f, .momentum = 0.9f}, a.gradient, a.values, a.values,
                   InPlace(a.slot));
    benchmark::ClobberMemory();
  }
  Report(state, 20);
}

void BM_Adagrad(benchmark::State& state) {
  Arrays a(state);
  for (auto _ : state) {
    UpdateAdagrad({.learning_rate = 0.01f, .epsilon = 1e-8f}, a.gradient, a.values, a.values,
                  InPlace(a.slot));
    benchmark::ClobberMemory();
  }
  Report(state, 20);
}

void BM_Adam(benchmark::State& state) {
  Arrays a(state);
  const AdamScalars scalars = {.rate = 0.01f,
                               .epsilon = 1e-8f,
                               .beta1 = 0.9f,
                               .one_minus_beta1 = 0.1f,
                               .beta2 = 0.999f,
                               .one_minus_beta2 = 0.001f};
  for (auto _ : state) {
    UpdateAdam(scalars, a.gradient, a.values, a.values, InPlace(a.slot), InPlace(a.other_slot));
    benchmark::ClobberMemory();
  }
  Report(state, 28);
}

void BM_AdamIntoOtherBuffers(benchmark::State& state) {
  Arrays a(state);
  std::vector<float> mean(a.slot.size()), square(a.slot.size());
  const AdamScalars scalars = {.rate = 0.01f,
                               .epsilon = 1e-8f,
                               .beta1 = 0.9f,
                               .one_minus_beta1 = 0.1f,
                               .beta2 = 0.999f,
                               .one_minus_beta2 = 0.001f};
  for (auto _ : state) {
    UpdateAdam(scalars, a.gradient, a.values, a.other_values, {.in = a.slot, .out = mean},
               {.in = a.other_slot, .out = square});
    benchmark::ClobberMemory();
  }
  Report(state, 40);
}

void BM_Lars(benchmark::State& state) {
  Arrays a(state);
  for (auto _ : state) {
    UpdateLars({.learning_rate = 0.01f, .momentum = 0.9f}, a.gradient, a.values, a.values,
               InPlace(a.slot));
    benchmark::ClobberMemory();
  }
  Report(state, 28);
}

void BM_Lamb(benchmark::State& state) {
  Arrays a(state);
  const LambScalars scalars = {.learning_rate = 0.01f,
                               .epsilon = 1e-8f,
                               .beta1 = 0.9f,
                               .one_minus_beta1 = 0.1f,
                               .beta2 = 0.999f,
                               .one_minus_beta2 = 0.001f};
  for (auto _ : state) {
    UpdateLamb(scalars, a.gradient, a.values, a.values, InPlace(a.slot), InPlace(a.other_slot));
    benchmark::ClobberMemory();
  }
  Report(state, 40);
}

void BM_CompensateDelay(benchmark::State& state) {
  Arrays a(state);
  for (auto _ : state) {
    CompensateDelay(0.01f, a.gradient, a.values, a.slot, a.other_slot);
    benchmark::ClobberMemory();
  }
  Report(state, 20);
}

void BM_AllFinite(benchmark::State& state) {
  Arrays a(state);
  for (auto _ : state) benchmark::DoNotOptimize(AllFinite(a.gradient));
  Report(state, 4);
}

BENCHMARK(BM_Sgd)->Arg(kCached)->Arg(kBeyondCache);
BENCHMARK(BM_SgdIntoOtherBuffer)->Arg(kCached)->Arg(kBeyondCache);
BENCHMARK(BM_Momentum)->Arg(kCached)->Arg(kBeyondCache);
BENCHMARK(BM_Nesterov)->Arg(kCached)->Arg(kBeyondCache);
BENCHMARK(BM_Adagrad)->Arg(kCached)->Arg(kBeyondCache);
BENCHMARK(BM_Adam)->Arg(kCached)->Arg(kBeyondCache);
BENCHMARK(BM_AdamIntoOtherBuffers)->Arg(kCached)->Arg(kBeyondCache);
BENCHMARK(BM_Lars)->Arg(kCached)->Arg(kBeyondCache);
BENCHMARK(BM_Lamb)->Arg(kCached)->Arg(kBeyondCache);
BENCHMARK(BM_CompensateDelay)->Arg(kCached)->Arg(kBeyondCache);
BENCHMARK(BM_AllFinite)->Arg(kCached)->Arg(kBeyondCache);

}  // namespace
}  // namespace covey

BENCHMARK_MAIN();
