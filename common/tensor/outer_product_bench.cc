// SPDX-License-Identifier: Apache-2.0

// The sum of outer products that a server makes of a push in factors, and what it takes the place
// of: reading the elements. A shard of 1 MiB, of 512 columns.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "benchmark/benchmark.h"
#include "common/tensor/kernels.h"
#include "common/tensor/outer_product.h"

namespace covey {
namespace {

constexpr MatrixRange kShard{.first_element = 0, .elements = 1 << 18, .columns = 512};

void BM_SumOuterProducts(benchmark::State& state) {
  const auto terms = static_cast<size_t>(state.range(0));
  const std::vector<float> left(terms * kShard.rows(), 0.5f);
  const std::vector<float> right(terms * kShard.columns, 0.25f);
  std::vector<float> elements(kShard.elements);
  for (auto _ : state) {
    SumOuterProducts(kShard, {.terms = terms, .left = left, .right = right}, elements);
    benchmark::DoNotOptimize(elements.data());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(terms * kShard.elements));
  state.SetLabel(AreFactorsSmaller(WireFormat::kFloat32, kShard, terms) ? "smaller" : "larger");
}
BENCHMARK(BM_SumOuterProducts)->Arg(1)->Arg(8)->Arg(32)->Arg(64)->Arg(128)->Arg(255);

void BM_AddElements(benchmark::State& state) {
  std::vector<float> sum(kShard.elements, 0.5f);
  const std::vector<float> gradient(kShard.elements, 0.25f);
  for (auto _ : state) {
    AddInto(sum, gradient);
    benchmark::DoNotOptimize(sum.data());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kShard.elements));
}
BENCHMARK(BM_AddElements);

}  // namespace
}  // namespace covey

BENCHMARK_MAIN();
