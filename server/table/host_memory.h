// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "common/base/buffer.h"
#include "common/base/buffer_pool.h"
#include "server/table/row_memory.h"
#include "server/table/table_memory.h"

namespace covey::server {

// Tables in the memory of the process. Values() and Slot() are the memory itself, without a copy:
// an update writes an array in place when no other handle refers to it, otherwise into a spare
// buffer.
class HostMemory final : public TableMemory {
 public:
  // `spares` and `rows` outlive it and the shards.
  explicit HostMemory(BufferPool& spares, RowMemory& rows = ProcessRowMemory())
      : spares_(spares), rows_(rows) {}

  RowMemory& rows() override { return rows_; }

  Buffer NewArray(size_t bytes) override { return spares_.Take(bytes); }
  absl::StatusOr<std::unique_ptr<ShardMemory>> Hold(const OptimizerConfig& optimizer,
                                                    Buffer values) override;

 private:
  BufferPool& spares_;
  RowMemory& rows_;
};

}  // namespace covey::server
