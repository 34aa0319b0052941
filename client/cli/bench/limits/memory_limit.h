// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/bench/limits/array_memory.h"
#include "client/cli/bench/limits/limit_load.h"
#include "client/cli/bench/limits/partner.h"
#include "client/cli/bench/measure/turns.h"

namespace covey::cli {

// The speed of memory without any other process: a copy, and c = a + b as in STREAM, over arrays
// that no cache holds when `bytes` is large. Confined to one thread.
class MemoryLimit {
 public:
  // Three arrays of `bytes` each.
  MemoryLimit(uint64_t bytes, absl::Duration duration)
      : bytes_(bytes), duration_(duration), memory_(bytes, 3) {}

  // One turn; GB/s of bytes copied.
  absl::StatusOr<Sample> Copy();
  // One turn; GB/s of bytes moved: two arrays read, one written.
  absl::StatusOr<Sample> Stream();

 private:
  const uint64_t bytes_;
  const absl::Duration duration_;
  ArrayMemory memory_;
};

// The speed of copies out of another process's memory (process_vm_readv): from a table of the
// operation's size there to a lane of ours. Confined to one thread.
class ProcessCopyLimit {
 public:
  // PERMISSION_DENIED: the system does not let a process read its child's memory.
  static absl::StatusOr<std::unique_ptr<ProcessCopyLimit>> Start(const LimitLoad& load);

  // One turn; GB/s.
  absl::StatusOr<Sample> Transfer();

 private:
  explicit ProcessCopyLimit(const LimitLoad& load) : load_(load) {}

  absl::Status CopyTable(LaneMemory& lane) const;

  const LimitLoad load_;
  std::unique_ptr<Partner> partner_;
  uint64_t address_ = 0;
  std::vector<LaneMemory> lanes_;
};

// The partner of ProcessCopyLimit: holds a table of `bytes` and prints its address.
absl::Status ServeProcessCopyLimit(uint64_t bytes);

}  // namespace covey::cli
