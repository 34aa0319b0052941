// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "common/base/buffer.h"

namespace covey {

// Memory for buffers of few sizes that are written, read and replaced all the time, as the arrays
// of a server's tables are: an update writes an array in place when nobody reads it, otherwise into
// a free buffer, and the old one is free once its last reader is done. So an update under load
// needs no new pages, and a server needs little more memory than its tables.
//
// Buffers of 256 KiB and more are parts of slabs; a slab has buffers of one size. Smaller buffers
// are malloc's. The pages of all slabs of a size but the first are obtained at once, at 3.1 GB/s;
// touched one by one they come at 2.3 (Linux 6 in a virtual machine), and after a cut the next
// update of each shard writes to memory that was never touched. Pages of 2 MiB come at 17 GB/s, but
// at 0.5 where a virtual machine returns free memory to its host.
//
// Take and Kept are for one thread. Buffers may be dropped on any thread, and may outlive the pool.
// Limits: a slab has 8 MiB, or one buffer if that is larger. A slab stays while one of its buffers
// is in use. Slabs without one stay while they have together at most `retained_bytes_max`, or a
// tenth of the others where that is more; a single one always stays.
class BufferPool {
 public:
  explicit BufferPool(size_t retained_bytes_max);
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  // A buffer of exactly this size, with unspecified bytes. Throws std::bad_alloc, as
  // Buffer::Allocate does.
  Buffer Take(size_t size);

  // As Buffer::Kept, with the copy in a buffer from Take.
  Buffer Kept(const Buffer& buffer);

  // Of the buffers in slabs that are not in use.
  size_t free_bytes() const;

 private:
  class Slabs;
  const std::shared_ptr<Slabs> slabs_;
};

}  // namespace covey
