// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "common/base/buffer.h"
#include "common/optimizer/optimizer.h"
#include "server/table/row_memory.h"

namespace covey::server {

// The values of a shard and the state slots of its optimizer, in the memory that holds them; and
// the optimizer, which runs where they are. Updates take effect in the order of calls.
//
// Actor-confined, except that handles from Values() and Slot() may be read and dropped on any
// thread. The bits do not depend on the kind of memory.
class ShardMemory {
 public:
  virtual ~ShardMemory() = default;

  virtual size_t slots() const = 0;
  // Precondition: the gradient is as long as the values. Its bytes may change after the call.
  virtual void Update(const UpdateContext& context, std::span<const float> gradient_sum) = 0;
  // The values after all updates so far, in host memory; the bytes under the handle never change.
  virtual Buffer Values() = 0;
  // The same for a slot. Precondition: slot < slots().
  virtual Buffer Slot(size_t slot) = 0;
  // Changes one array, element by element: `change` reads all of `in` and writes all of `out`, in
  // host memory, where they are the very same memory or disjoint. 0 = the values, then each slot.
  // Precondition: array <= slots().
  virtual void Change(size_t array,
                      absl::FunctionRef<void(std::span<const float>, std::span<float>)> change) = 0;
  // Host memory for Restore: of the size of the values, with unspecified bytes.
  virtual Buffer NewArray() = 0;
  // Replaces the content. Preconditions (checked): as many slots, all buffers of the same size as
  // the values.
  virtual void Restore(Buffer values, std::vector<Buffer> slots) = 0;
};

// Where a server keeps its tables: a choice of the server's operator, not of a table, so that the
// servers of a chain may differ in it. One per data loop, which it outlives.
//
// Actor-confined.
class TableMemory {
 public:
  virtual ~TableMemory() = default;

  // Of sparse tables.
  virtual RowMemory& rows() = 0;

  // Host memory for the first values of a shard, with unspecified bytes.
  virtual Buffer NewArray(size_t bytes) = 0;
  // Memory for these first values, with zeros in the optimizer's slots. Precondition: `values` is
  // not referenced elsewhere.
  // INVALID_ARGUMENT: as MakeOptimizer. RESOURCE_EXHAUSTED: too little memory is free; names it.
  virtual absl::StatusOr<std::unique_ptr<ShardMemory>> Hold(const OptimizerConfig& optimizer,
                                                            Buffer values) = 0;
};

}  // namespace covey::server
