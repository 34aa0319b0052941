// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "common/base/buffer.h"

namespace covey::server {

// Where the rows of a data loop's sparse tables are, with the state of their optimizers. The bits
// do not depend on it.
//
// Actor-confined, except that any thread may drop chunks.
class RowMemory {
 public:
  virtual ~RowMemory() = default;

  // Memory with unspecified bytes, aligned to 64 bytes. It may outlive this object.
  virtual Buffer NewChunk(size_t bytes) = 0;
};

// The memory of the process. Chunks of 2 MiB come from a reserve of 8 MiB (chunk_reserve.h). Any
// thread may use it.
RowMemory& ProcessRowMemory();

}  // namespace covey::server
