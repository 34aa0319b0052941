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

// Which elements of a dense table a shard holds, and how they start and learn.
struct DenseShardConfig {
  uint64_t first_element = 0;  // index in the whole table
  uint64_t element_count = 0;  // at least 1
  InitializerConfig initializer = {};
  OptimizerConfig optimizer = {};
  LearningRateConfig learning_rate = {};
};

// What an update does differently because its gradient is late. The default changes no bit.
struct UpdateAdjustment {
  // Multiplies the learning rate of the schedule.
  double rate_factor = 1;
  // In place of the optimizer's momentum.
  std::optional<double> momentum = std::nullopt;
};

// An element range of a dense float32 table: its values, the state of its optimizer, and how far it
// has come. Its owner decides which pushes are admitted.
//
// Actor-confined, except that handles from Values() may be read and dropped on any thread.
// Deterministic: the bits depend on the config and on the sequence of Apply calls only. Memory: the
// values, as much again for each state slot of the optimizer, and what `spares` keeps.
class DenseShard {
 public:
  // Allocates and initializes. `spares` must outlive the shard.
  // INVALID_ARGUMENT: the range is empty or passes kTableElementsMax, or a part of the config is
  // not valid.
  static absl::StatusOr<std::unique_ptr<DenseShard>> Create(const DenseShardConfig& config,
                                                            SpareBuffers& spares);

  // One update by the mean of a gradient over `samples` training examples, given as their sum. The
  // learning rate is that of the total of samples with these included. Writes in place when nobody
  // holds the values, else into a spare: never into what Values() gave out.
  //
  // INVALID_ARGUMENT: the gradient has another length than the shard, or samples is 0 or makes the
  // total overflow; nothing has changed then. Not idempotent: refuse duplicates before. NaN and
  // infinity are applied: screen with AllFinite before.
  absl::Status Apply(std::span<const float> gradient_sum, uint64_t samples,
                     const UpdateAdjustment& adjustment = {});

  // The current values, without a copy; the bytes under the handle never change.
  Buffer Values() const { return values_; }

  // The state of the optimizer; the bytes under these handles do change.
  const std::vector<Buffer>& slots() const { return slots_; }
  // Goes on from the content of another shard of the same definition. Preconditions (checked): as
  // many slots, everything as long as the values here; the slots are not referenced elsewhere.
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
