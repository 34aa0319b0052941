// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/buffer.h"
#include "server/table/row_memory.h"

namespace covey::server {

// Rows in a mapped file, so that tables may be larger than the memory: the system keeps the pages
// that are used in memory, writes changed ones in the background, and reads others when they are
// used again. That takes as long as the disk needs, during which the loop serves nobody.
//
// The file has no name, and is gone with the process, however that ends: what a crash may cost is a
// matter of replicas and of --durability, as for tables in memory.
//
// Where the disk has no room for a chunk, the chunk is in the memory of the process, and a warning
// is logged. A disk that fails to read a page ends the process (SIGBUS).
class RowFile final : public RowMemory {
 public:
  // INVALID_ARGUMENT: no file can be made and mapped in the folder; the message says why.
  static absl::StatusOr<std::unique_ptr<RowFile>> Create(absl::string_view folder);
  ~RowFile() override;

  // In the file if it is at least a page.
  Buffer NewChunk(size_t bytes) override;

 private:
  class File;
  class Region;

  explicit RowFile(std::shared_ptr<File> file);

  const std::shared_ptr<File> file_;
  // The part of the file that chunks are taken from; those before it live as long as their chunks.
  std::shared_ptr<Region> region_;
  size_t used_ = 0;  // bytes of the region
};

}  // namespace covey::server
