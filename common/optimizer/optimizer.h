#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace covey {

enum class OptimizerKind { kSgd, kMomentum, kNesterov, kAdagrad, kAdam, kAdamW };

// In lower case: "sgd", …, "adamw".
absl::string_view OptimizerName(OptimizerKind kind);

// Chosen per table. Fields that a kind does not mention are ignored by it. Formulas: kernels.h.
struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::kSgd;
  // All. L2 penalty added to the gradient; for AdamW the decoupled decay, times the learning rate.
  // In [0, 1].
  double weight_decay = 0;
  // Momentum and Nesterov: share of the velocity that survives an update. In [0, 1).
  double momentum = 0.9;
  // Adam and AdamW: share of the running mean (beta1) and of the mean square (beta2) that survives
  // an update. In [0, 1).
  double beta1 = 0.9;
  double beta2 = 0.999;
  // Adagrad, Adam, AdamW: keeps the divisor away from 0; larger damps the updates. In [1e-12, 1].
  double epsilon = 1e-8;

  // INVALID_ARGUMENT: a field is out of its range, or not a number; names the field, its value and
  // the range.
  absl::Status Validate() const;
};

// What changes from one update to the next.
struct UpdateContext {
  double learning_rate = 0;
  double gradient_scale = 1;  // 1 / samples: the gradient is gradient_sum * gradient_scale
  uint64_t update_index = 1;  // updates of the shard, this one included; Adam corrects bias by it
};

// Turns a gradient into new values: the rule by which a shard learns. Made once per shard from its
// table's definition; called by the shard, once per batch of elements.
//
// Holds no state of its own: the state is in the slots, float arrays as long as the values, which
// the shard owns, replicates and saves. Immutable, so thread-safe. Deterministic and element-wise:
// applying to slices gives the same bits as applying to the whole.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Each slot holds zeros before the first update.
  virtual int state_slots() const = 0;

  // Preconditions (checked): one span of slots per state slot; all spans of one length;
  // update_index ≥ 1. `values_out` is exactly `values_in`, or overlaps no other span. No
  // allocation; bytes moved: kernels.h. Values that are not finite go through as arithmetic says;
  // screen gradients before.
  void Apply(const UpdateContext& context, std::span<const float> gradient_sum,
             std::span<const float> values_in, std::span<float> values_out,
             std::span<const std::span<float>> slots) const;

 private:
  virtual void Update(const UpdateContext& context, std::span<const float> gradient_sum,
                      std::span<const float> values_in, std::span<float> values_out,
                      std::span<const std::span<float>> slots) const = 0;
};

// INVALID_ARGUMENT: as OptimizerConfig::Validate.
absl::StatusOr<std::unique_ptr<Optimizer>> MakeOptimizer(const OptimizerConfig& config);

}  // namespace covey
