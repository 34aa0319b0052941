// SPDX-License-Identifier: Apache-2.0

// What it costs the loop of a shard to capture the shard's content: the capture itself, and the
// next update, which must not write what was captured. 1 MiB of values under Adam, and eight groups
// whose windows of pushes are full, as after a while of training.
// bazel run --config=opt //server/replication:content_cut_bench

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "benchmark/benchmark.h"
#include "common/base/buffer_pool.h"
#include "common/base/check.h"
#include "common/cluster/ids.h"
#include "common/cluster/limits.h"
#include "common/optimizer/optimizer.h"
#include "server/replication/content_cut.h"
#include "server/replication/content_pieces.h"
#include "server/replication/shard_content.h"
#include "server/replication/shard_record.h"
#include "server/table/host_memory.h"

namespace covey::server {
namespace {

// Captures that are held until the end, so that each update after them needs memory that was never
// touched.
constexpr int kHeld = 30;
constexpr uint64_t kElements = (1 << 20) / sizeof(float);
constexpr uint64_t kGroups = 8;

class UpdatedShard {
 public:
  UpdatedShard() {
    for (uint64_t i = 0; i < kGroups * kDedupWindow; ++i) Append(Version());
    for (int i = 0; i < 3; ++i) Update();
  }
  void Update() { Append(content_->version().Next()); }
  const ShardContent& content() const { return *content_; }

 private:
  // An update, or with version 0 a discarded push.
  void Append(Version version) {
    const bool is_update = version != Version();
    const uint64_t index = content_->index() + 1, group = index % kGroups, step = index / kGroups;
    const ShardRecord record{
        .index = index,
        .version = version,
        .pushes = {{.key = {.producer = {.kind = Producer::Kind::kGroup, .id = group},
                            .incarnation = 1,
                            .sequence = step},
                    .group = GroupId(group),
                    .step = Step(step),
                    .discarded = !is_update}},
        .samples = 32,
        .adjustment = {},
        .gradient = {},
        .digest = {}};
    const std::span<const float> gradient = gradient_;
    COVEY_CHECK(
        content_->Apply(absl::UnixEpoch(), record, is_update ? gradient : gradient.first(0)).ok());
  }

  BufferPool spares_{16 << 20};
  HostMemory memory_{spares_};
  const std::unique_ptr<ShardContent> content_ =
      *ShardContent::Create(absl::UnixEpoch(),
                            DenseShardConfig{.element_count = kElements,
                                             .optimizer = {.kind = OptimizerKind::kAdam},
                                             .learning_rate = {.base_rate = 1e-3}},
                            memory_);
  const std::vector<float> gradient_ = std::vector<float>(kElements, 1e-3f);
};

void BM_UpdateInPlace(benchmark::State& state) {
  UpdatedShard shard;
  for (auto _ : state) shard.Update();
}

void BM_Cut(benchmark::State& state) {
  UpdatedShard shard;
  for (auto _ : state) benchmark::DoNotOptimize(shard.content().Cut());
}

// The buffers of the capture before are at hand.
void BM_UpdateAfterCut(benchmark::State& state) {
  UpdatedShard shard;
  ContentCut cut;
  for (auto _ : state) {
    state.PauseTiming();
    cut = shard.content().Cut();
    state.ResumeTiming();
    shard.Update();
  }
}

void BM_UpdateAfterCutIntoFreshMemory(benchmark::State& state) {
  UpdatedShard shard;
  std::vector<ContentCut> held;
  for (auto _ : state) {
    state.PauseTiming();
    held.push_back(shard.content().Cut());
    state.ResumeTiming();
    shard.Update();
  }
}

// For a joining replica: describes the pushes.
void BM_Export(benchmark::State& state) {
  UpdatedShard shard;
  std::vector<std::unique_ptr<ContentExport>> held;
  for (auto _ : state) {
    held.push_back(std::make_unique<ContentExport>(shard.content().Cut()));
    state.PauseTiming();
    shard.Update();
    state.ResumeTiming();
  }
}

// What a writer on another thread pays.
void BM_Digest(benchmark::State& state) {
  UpdatedShard shard;
  const ContentCut cut = shard.content().Cut();
  for (auto _ : state) benchmark::DoNotOptimize(cut.Digest());
}

constexpr auto kUnit = benchmark::kMicrosecond;
BENCHMARK(BM_UpdateInPlace)->Unit(kUnit);
BENCHMARK(BM_Cut)->Unit(kUnit);
BENCHMARK(BM_UpdateAfterCut)->Unit(kUnit);
BENCHMARK(BM_UpdateAfterCutIntoFreshMemory)->Unit(kUnit)->Iterations(kHeld);
BENCHMARK(BM_Export)->Unit(kUnit)->Iterations(kHeld);
BENCHMARK(BM_Digest)->Unit(kUnit);

}  // namespace
}  // namespace covey::server

BENCHMARK_MAIN();
