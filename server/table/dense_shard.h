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
#include "common/tensor/outer_product.h"
#include "common/vectors/vector_function.h"
#include "server/table/initializer.h"
#include "server/table/table_memory.h"

namespace covey::server {

// The elements of a dense table that a shard holds, their first values, and their optimizer.
struct DenseShardConfig {
  uint64_t first_element = 0;  // index in the whole table
  uint64_t element_count = 0;  // at least 1
  uint64_t columns = 0;        // as MatrixRange
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
// Actor-confined, except that handles from Values() and Slot() may be read and dropped on any
// thread. Deterministic: the bits depend on the config and on the sequence of Apply calls only, not
// on the kind of memory. Memory: the values, and the same size for each state slot of the
// optimizer.
class DenseShard {
 public:
  // Allocates and initializes. `memory` outlives the shard.
  // INVALID_ARGUMENT: the range is empty or passes kTableElementsMax, or a part of the config is
  // not valid, or not possible in this memory. RESOURCE_EXHAUSTED: too little memory is free.
  static absl::StatusOr<std::unique_ptr<DenseShard>> Create(const DenseShardConfig& config,
                                                            TableMemory& memory);

  // One update by the mean of a gradient over `samples` training examples, given as their sum. The
  // learning rate is that of the total of samples, these included. The bytes that Values() and
  // Slot() have given out never change.
  //
  // INVALID_ARGUMENT: the gradient has another length than the shard, or samples is 0 or makes the
  // total overflow; nothing has changed then. Not idempotent: callers refuse duplicates before. NaN
  // and infinity are applied: callers check with AllFinite before.
  absl::Status Apply(std::span<const float> gradient_sum, uint64_t samples,
                     const UpdateAdjustment& adjustment = {});

  // One update by functions on the shard's part of the vectors, in their order; samples stay.
  // INVALID_ARGUMENT: as CheckFunctions; nothing has changed then.
  absl::Status Apply(std::span<const VectorFunction> functions);
  // The shard's answers. Precondition: they have passed CheckQueries.
  std::vector<VectorAnswer> Answer(std::span<const VectorQuery> queries) const;
  // Of a table of vectors, the values among them; 0 for other tables.
  size_t vectors() const { return has_vectors_ ? 1 + slots() : 0; }

  // As ShardMemory.
  Buffer Values() const { return memory_->Values(); }
  size_t slots() const { return memory_->slots(); }
  Buffer Slot(size_t slot) const { return memory_->Slot(slot); }
  Buffer NewArray() { return memory_->NewArray(); }
  // Continues from the content of another shard of the same definition. Preconditions as
  // ShardMemory::Restore.
  void Restore(Buffer values, std::vector<Buffer> slots, uint64_t version, uint64_t samples);

  uint64_t first_element() const { return first_element_; }
  uint64_t element_count() const { return element_count_; }
  // Its elements in the table's matrix.
  MatrixRange matrix() const {
    return {.first_element = first_element_, .elements = element_count_, .columns = columns_};
  }
  uint64_t version() const { return version_; }  // updates applied
  uint64_t samples() const { return samples_; }  // in all updates applied

 private:
  DenseShard(const DenseShardConfig& config, LearningRateSchedule schedule,
             std::unique_ptr<ShardMemory> memory);

  Buffer Vector(uint32_t vector) const { return vector == 0 ? Values() : Slot(vector - 1); }

  // Constant after construction.
  const uint64_t first_element_;
  const uint64_t element_count_;
  const uint64_t columns_;
  const LearningRateSchedule schedule_;
  const bool has_vectors_;

  // Owned by the actor's thread.
  const std::unique_ptr<ShardMemory> memory_;
  uint64_t version_ = 0;
  uint64_t samples_ = 0;
};

}  // namespace covey::server
