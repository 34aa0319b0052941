// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "common/base/buffer.h"
#include "common/base/buffer_pool.h"
#include "server/table/device.h"
#include "server/table/row_memory.h"
#include "server/table/table_memory.h"

namespace covey::server {

// Tables in the memory of a device. A gradient is copied in, and the update runs there. Values are
// copied out when they are read, at most once per update, so updates that nobody reads cost no
// copy and no wait. A slot is copied out each time that it is read.
//
// Memory of the device: values and slots of each shard, and one gradient of the largest shard. Of
// the host: the newest copy of the values of each shard that was ever read, and old ones and copies
// of slots while they are being read.
class DeviceMemory final : public TableMemory {
 public:
  // `device`, `spares` and `rows` outlive it and the shards.
  DeviceMemory(Device& device, BufferPool& spares, RowMemory& rows = ProcessRowMemory())
      : device_(device), spares_(spares), rows_(rows) {}

  // Not in the memory of the device.
  RowMemory& rows() override { return rows_; }

  Buffer NewArray(size_t bytes) override { return spares_.Take(bytes); }
  absl::StatusOr<std::unique_ptr<ShardMemory>> Hold(const OptimizerConfig& optimizer,
                                                    Buffer values) override;

 private:
  friend class DeviceShard;

  // Makes room for a gradient of this length.
  absl::Status Reserve(size_t count);

  // Constant after construction.
  Device& device_;
  BufferPool& spares_;
  RowMemory& rows_;

  // Owned by the actor's thread.
  // The gradient of the update that the device does next. Shared, since it does one at a time.
  std::unique_ptr<DeviceArray> gradient_;
};

}  // namespace covey::server
