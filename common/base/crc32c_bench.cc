// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <vector>

#include "common/base/crc32c.h"

namespace covey {
namespace {

void BM_Crc32c(benchmark::State& state) {
  const std::vector<uint8_t> bytes(static_cast<size_t>(state.range(0)), 7);
  for (auto _ : state) benchmark::DoNotOptimize(Crc32c(bytes));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
// An envelope, a small tensor, a shard, the largest shard.
BENCHMARK(BM_Crc32c)->Arg(100)->Arg(4 << 10)->Arg(1 << 20)->Arg(16 << 20);

}  // namespace
}  // namespace covey

BENCHMARK_MAIN();
