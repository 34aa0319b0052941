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

// Consecutive shards whose values a member updates itself: what server/table/dense_shard.h is on a
// server, with the same arithmetic in the same order, so the same bits. Memory: the values, and as
// much again for each state slot of the optimizer.
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

  // `shards`: elements of each, in order. INVALID_ARGUMENT: the config is not valid.
  static absl::StatusOr<MemberShards> Create(const Config& config, std::span<const size_t> shards);

  // One update of each shard by a gradient given as its sum over `samples` >= 1 examples.
  // INVALID_ARGUMENT: it is not finite; nothing has changed then. Precondition: of the values'
  // size.
  absl::Status Apply(std::span<const float> sum, uint64_t samples);

  // The learning rate goes on as after so many examples; the optimizer's state stays as it is.
  void SkipTo(uint64_t samples) { samples_ = samples; }

  std::span<float> values() { return values_; }
  std::span<const float> values() const { return values_; }

 private:
  struct Shard {
    std::span<float> values;
    std::vector<std::span<float>> slots;
  };

  MemberShards(const Config& config, std::unique_ptr<Optimizer> optimizer,
               const LearningRateSchedule& schedule, std::span<const size_t> shards);

  bool refuses_non_finite_ = true;
  std::unique_ptr<Optimizer> optimizer_;
  LearningRateSchedule schedule_;
  std::vector<float> values_;
  std::vector<std::vector<float>> slots_;
  std::vector<Shard> shards_;  // ranges of both
  uint64_t updates_ = 0;
  uint64_t samples_ = 0;
};

}  // namespace covey::worker
