// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/buffer.h"
#include "common/base/mutex.h"

namespace covey::server {

// Chunks of memory whose pages a thread of the reserve has touched beforehand. So whoever takes one
// does not wait until the system has found and cleared a huge page: 0.3 ms, and up to 19 ms where
// the host of a virtual machine has to find it first.
//
// The thread starts with the first Take, and keeps `ahead` chunks ready from then on. Thread-safe.
class ChunkReserve {
 public:
  // Preconditions: both are at least 1.
  ChunkReserve(size_t chunk_bytes, size_t ahead) : chunk_bytes_(chunk_bytes), ahead_(ahead) {}
  // Waits for the chunk that is being touched.
  ~ChunkReserve();
  ChunkReserve(const ChunkReserve&) = delete;

  // A chunk with unspecified bytes, as of Buffer::Allocate. Never waits for the thread: where no
  // chunk is ready, it is a new one.
  Buffer Take();
  // Chunks that are ready now.
  size_t ready() const;

 private:
  void Refill();
  // False: the reserve is going.
  bool WaitUntilWanted();

  const size_t chunk_bytes_;
  const size_t ahead_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<Buffer> chunks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace covey::server
