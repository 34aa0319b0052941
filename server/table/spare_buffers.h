// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "common/base/buffer.h"

namespace covey::server {

// Memory for updates whose current values or slots are still being read: the update is written into
// a spare buffer, and the old array becomes a spare once its last reader is done. So an update
// under load needs no new pages, and a server needs little more memory than its tables. One per
// data loop, shared by its shards, which it must outlive.
//
// Actor-confined; readers of the buffers may drop them on any thread. Limits: always keeps the
// newest spare, and older ones only while all together stay within `retained_bytes_max`; a dropped
// spare is freed when its last reader is done.
class SpareBuffers {
 public:
  explicit SpareBuffers(size_t retained_bytes_max) : retained_bytes_max_(retained_bytes_max) {}
  SpareBuffers(const SpareBuffers&) = delete;
  SpareBuffers& operator=(const SpareBuffers&) = delete;

  // A buffer of exactly this size that is not referenced elsewhere, with unspecified bytes. Linear
  // in the number of spares.
  Buffer Take(size_t size);

  // Keeps the buffer for a later Take; its readers may still hold it.
  void Retire(Buffer buffer);

  // As Buffer::Kept. The copy is in a spare, which is reused once all its handles are dropped.
  Buffer Kept(const Buffer& buffer);

  size_t retained_bytes() const { return retained_bytes_; }

 private:
  const size_t retained_bytes_max_;

  std::vector<Buffer> spares_;  // oldest first
  size_t retained_bytes_ = 0;
};

}  // namespace covey::server
