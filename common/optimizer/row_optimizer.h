// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/optimizer/kernels.h"
#include "common/optimizer/optimizer.h"
#include "common/optimizer/row_layout.h"

namespace covey {

// Rows that a call of RowOptimizer::Apply takes at most.
inline constexpr size_t kRowsPerUpdateMax = 64;

// Computes new rows of a sparse table from their gradients. Made once per shard from its table's
// definition. A row's path depends on its own gradients and on the rate only: not on other rows,
// and not on how the table is cut into shards. So Adam corrects its bias by the row's own count of
// updates, where PyTorch's SparseAdam counts the updates of the table. SGD, Adagrad, and Adam of
// rows that are part of every update have the bits of Optimizer.
//
// Holds no state of its own: it is in the row's slots, which the shard owns. Immutable, so
// thread-safe. Deterministic.
class RowOptimizer {
 public:
  // INVALID_ARGUMENT: as OptimizerConfig::Validate; or the kind or a part of the config has no
  // meaning for rows of which an update holds some, and says why. Precondition: width >= 1.
  static absl::StatusOr<std::unique_ptr<RowOptimizer>> Create(const OptimizerConfig& config,
                                                              size_t width);
  virtual ~RowOptimizer() = default;

  // At most 2. A new row's slots hold zeros.
  virtual size_t slots() const = 0;
  // Elements of a row's slot. Precondition: slot < slots().
  virtual size_t slot_width(size_t /*slot*/) const { return width_; }
  // Of rows whose values are stored so.
  RowLayout layout(WireFormat type) const;

  // Updates the rows in place. updates[i] counts the updates of row i, this one included;
  // UpdateContext::update_index and momentum are ignored. Preconditions (checked): equal sizes, at
  // most kRowsPerUpdateMax rows; the pointers of each as RowUpdate says. NaN and infinity
  // propagate.
  void Apply(const UpdateContext& context, std::span<const RowUpdate> rows,
             std::span<const uint32_t> updates) const;

 protected:
  explicit RowOptimizer(size_t width) : width_(width) {}
  size_t width() const { return width_; }

 private:
  virtual void Update(const UpdateContext& context, std::span<const RowUpdate> rows,
                      std::span<const uint32_t> updates) const = 0;

  const size_t width_;
};

// What RowOptimizer::Create would refuse.
absl::Status CheckRowOptimizer(const OptimizerConfig& config);

}  // namespace covey
