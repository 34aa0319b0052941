// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/buffer.h"
#include "common/optimizer/learning_rate.h"
#include "common/optimizer/optimizer.h"
#include "server/table/initializer.h"
#include "server/table/spare_buffers.h"

namespace covey::server {

// The elements of a dense table that a shard holds, their first values, and their optimizer.
struct DenseShardConfig {
  uint64_t first_element = 0;  // index in the whole table
  uint64_t element_count = 0;  // at least 1
  InitializerConfig initializer = {};
  OptimizerConfig optimizer = {};
  LearningRateConfig learning_rate = {};
};

// Changes to an update whose gradient is late. The default changes no bit.
struct UpdateAdjustment {
  // Multiplies the learning rate of the schedule.
  double rate_factor = 1;
  // Replaces the optimizer's momentum.
  std::optional<double> momentum = std::nullopt;
};

// An element range of a dense float32 table: its values, the state of its optimizer, and the counts
// of updates and samples. Its owner decides which pushes are admitted.
//
// Actor-confined, except that handles from Values() may be read and dropped on any thread.
// Deterministic: the bits depend on the config and on the sequence of Apply calls only. Memory: the
// values, the same size for each state slot of the optimizer, and the buffers in `spares`.
class DenseShard {
 public:
  // Allocates and initializes. `spares` must outlive the shard.
  // INVALID_ARGUMENT: the range is empty or passes kTableElementsMax, or a part of the config is
  // not valid.
  static absl::StatusOr<std::unique_ptr<DenseShard>> Create(const DenseShardConfig& config,
                                                            SpareBuffers& spares);

  // One update by the mean of a gradient over `samples` training examples, given as their sum. The
  // learning rate is that of the total of samples, these included. Writes in place when no other
  // handle refers to the values, otherwise into a spare buffer; the bytes that Values() has given
  // out never change.
  //
  // INVALID_ARGUMENT: the gradient has another length than the shard, or samples is 0 or makes the
  // total overflow; nothing has changed then. Not idempotent: callers refuse duplicates before. NaN
  // and infinity are applied: callers check with AllFinite before.
  absl::Status Apply(std::span<const float> gradient_sum, uint64_t samples,
                     const UpdateAdjustment& adjustment = {});

  // The current values, without a copy; the bytes under the handle never change.
  Buffer Values() const { return values_; }

  // The state of the optimizer; the bytes under these handles do change.
  const std::vector<Buffer>& slots() const { return slots_; }
  // Continues from the content of another shard of the same definition. Preconditions (checked):
  // the same number of slots, all buffers of the same size as the values; the slots are not
  // referenced elsewhere.
  void Restore(Buffer values, std::vector<Buffer> slots, uint64_t version, uint64_t samples);

  uint64_t first_element() const { return first_element_; }
  uint64_t element_count() const { return values_.size() / sizeof(float); }
  uint64_t version() const { return version_; }  // updates applied
  uint64_t samples() const { return samples_; }  // in all updates applied

 private:
  DenseShard(const DenseShardConfig& config, std::unique_ptr<Optimizer> optimizer,
             LearningRateSchedule schedule, SpareBuffers& spares);

  // Constant after construction.
  const uint64_t first_element_;
  const std::unique_ptr<Optimizer> optimizer_;
  const LearningRateSchedule schedule_;
  SpareBuffers& spares_;

  // Owned by the actor's thread.
  Buffer values_;
  std::vector<Buffer> slots_;
  std::vector<std::span<float>> slot_spans_;  // of slots_
  uint64_t version_ = 0;
  uint64_t samples_ = 0;
};

}  // namespace covey::server
