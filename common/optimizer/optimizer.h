// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/optimizer/update_kernels.h"

namespace covey {

enum class OptimizerKind {
  kSgd,
  kMomentum,
  kNesterov,
  kAdagrad,
  kAdam,
  kAdamW,
  kLars,
  kLamb,
  kDelayedNesterov,
  kRowwiseAdagrad,
  kFtrl,
  kVectors
};

// In lower case: "sgd", …, "vectors".
absl::string_view OptimizerName(OptimizerKind kind);

// Whether the kind reads OptimizerConfig::momentum.
bool HasMomentum(OptimizerKind kind);

// Whether the kind updates rows, and so only those of sparse tables.
bool NeedsRows(OptimizerKind kind);

// Whether the update of an element depends on that element alone. False for LARS and LAMB, whose
// rate follows norms over the whole call: a table with one of these learns differently for each way
// of cutting it into shards, and so should have few shards. False for row-wise Adagrad, too.
bool IsElementwise(OptimizerKind kind);

// Largest OptimizerConfig::delay.
inline constexpr uint32_t kDelayMax = 4096;
// Largest OptimizerConfig::vectors; a history of L-BFGS has 20 to 40.
inline constexpr uint32_t kVectorsMax = 64;

// Chosen per table. A kind ignores the fields that do not mention it. Formulas: kernels.h,
// trust_kernels.h for LARS and LAMB.
struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::kSgd;
  // All. L2 penalty added to the gradient; for AdamW and LAMB the decoupled decay, times the
  // learning rate. In [0, 1].
  double weight_decay = 0;
  // Momentum, Nesterov, LARS, delayed Nesterov: fraction of the velocity that remains after an
  // update. In [0, 1).
  double momentum = 0.9;
  // Adam, AdamW, LAMB: fraction of the running mean (beta1) and of the mean square (beta2) that
  // remains after an update. In [0, 1).
  double beta1 = 0.9;
  double beta2 = 0.999;
  // Both kinds of Adagrad, Adam, AdamW, LAMB: keeps the divisor away from 0; larger values damp the
  // updates. In [1e-12, 1].
  double epsilon = 1e-8;
  // LARS: the ratio of an update's norm to the values' norm, before the learning rate. In
  // [1e-12, 1].
  double trust_coefficient = 0.001;
  // Delayed Nesterov: updates between two changes of the velocity. In [1, kDelayMax].
  uint32_t delay = 1;
  // FTRL. beta: larger values damp the first updates; in [0, 1e6]. l1: a value is 0 until the
  // evidence for it exceeds l1; in [0, 1e6]. l2: draws values to 0; in [0, 1e6]. Its alpha is the
  // learning rate.
  double ftrl_beta = 1;
  double l1 = 0;
  double l2 = 0;
  // Vectors: how many there are besides the values, in [1, kVectorsMax]; each is a slot. An update
  // adds learning_rate * gradient to the first, and leaves the others and the values as they are.
  uint32_t vectors = 1;

  // INVALID_ARGUMENT: a field is out of its range, or not a number; names the field, its value and
  // the range.
  absl::Status Validate() const;
};

// The inputs that change from one update to the next.
struct UpdateContext {
  double learning_rate = 0;
  double gradient_scale = 1;  // 1 / samples: the gradient is gradient_sum * gradient_scale
  uint64_t update_index = 1;  // updates of the shard, this one included; Adam corrects bias by it
  // Overrides OptimizerConfig::momentum, for kinds that have one; in [0, 1).
  std::optional<double> momentum = std::nullopt;
};

// Computes new values from a gradient. Made once per shard from its table's definition; called by
// the shard, once per batch of elements.
//
// Holds no state of its own: the state is in the slots, float arrays as long as the values, which
// the shard owns, replicates and saves. Immutable, so thread-safe. Deterministic; and, where
// IsElementwise(kind), applying to slices gives the same bits as applying to the whole.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Each slot holds zeros before the first update.
  virtual int state_slots() const = 0;

  // Preconditions (checked): one entry of `slots` per state slot; all spans of one length;
  // update_index ≥ 1. `values_out` is exactly `values_in`, or overlaps no other span; likewise each
  // slot's `out` is exactly its `in`, or overlaps no other span. Every `out` holds the slot after
  // the update, also where a kind leaves a slot as it is. No allocation; bytes moved: kernels.h.
  // NaN and infinity propagate; callers check gradients before.
  void Apply(const UpdateContext& context, std::span<const float> gradient_sum,
             std::span<const float> values_in, std::span<float> values_out,
             std::span<const SlotSpans> slots) const;

 private:
  virtual void Update(const UpdateContext& context, std::span<const float> gradient_sum,
                      std::span<const float> values_in, std::span<float> values_out,
                      std::span<const SlotSpans> slots) const = 0;
};

// An optimizer over the memory of these kernels. INVALID_ARGUMENT: as OptimizerConfig::Validate, or
// the optimizer has no kernel for this memory, or NeedsRows; names it.
absl::StatusOr<std::unique_ptr<Optimizer>> MakeOptimizer(
    const OptimizerConfig& config, const UpdateKernels& kernels = kHostKernels);

}  // namespace covey
