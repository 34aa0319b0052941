// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/optimizer/learning_rate.h"
#include "common/optimizer/optimizer.h"

namespace covey::worker {

// Consecutive shards whose values a member updates itself. The counterpart of
// server/table/dense_shard.h on a server, with the same arithmetic in the same order, so the same
// bits. Memory: the values, and as much again for each state slot of the optimizer.
//
// Actor-confined. Deterministic.
class MemberShards {
 public:
  struct Config {
    OptimizerConfig optimizer;
    LearningRateConfig learning_rate;
    // Refuse gradients with NaN or infinity.
    bool refuses_non_finite = true;
  };

  // `shards`: the number of elements of each, in order. INVALID_ARGUMENT: the config is not valid.
  static absl::StatusOr<MemberShards> Create(const Config& config, std::span<const size_t> shards);

  // Applies one update to each shard, by a gradient given as its sum over `samples` examples, at
  // the schedule's learning rate times `rate_factor`. Does nothing when there are no samples.
  // INVALID_ARGUMENT: it is not finite; then nothing has changed. Precondition: `sum` has the
  // values' size.
  absl::Status Apply(std::span<const float> sum, uint64_t samples, double rate_factor = 1);

  // Sets the example count that the learning rate follows; the optimizer's state is unchanged.
  void SkipTo(uint64_t samples) { samples_ = samples; }

  std::span<float> values() { return values_; }
  std::span<const float> values() const { return values_; }

 private:
  struct Shard {
    std::span<float> values;
    std::vector<SlotSpans> slots;
  };

  MemberShards(const Config& config, std::unique_ptr<Optimizer> optimizer,
               const LearningRateSchedule& schedule, std::span<const size_t> shards);

  bool refuses_non_finite_ = true;
  std::unique_ptr<Optimizer> optimizer_;
  LearningRateSchedule schedule_;
  std::vector<float> values_;
  std::vector<std::vector<float>> slots_;
  std::vector<Shard> shards_;  // ranges of both vectors
  uint64_t updates_ = 0;
  uint64_t samples_ = 0;
};

}  // namespace covey::worker
