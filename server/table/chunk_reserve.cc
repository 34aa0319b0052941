// SPDX-License-Identifier: Apache-2.0
#include "server/table/chunk_reserve.h"

#include <pthread.h>
#include <signal.h>

#include <cstdint>
#include <utility>

#include "absl/time/time.h"

namespace covey::server {
namespace {

constexpr size_t kPageBytes = 4096;

Buffer NewTouchedChunk(size_t bytes) {
  Buffer chunk = Buffer::Allocate(bytes);
  // The first byte of each page suffices. The compiler must not leave it out.
  volatile uint8_t* const data = chunk.MutableData();
  for (size_t at = 0; at < bytes; at += kPageBytes) data[at] = 0;
  return chunk;
}

}  // namespace

ChunkReserve::~ChunkReserve() {
  std::thread thread;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    thread = std::move(thread_);
  }
  changed_.NotifyAll();
  if (thread.joinable()) thread.join();
}

Buffer ChunkReserve::Take() {
  Buffer chunk;
  {
    const MutexLock lock(mutex_);
    if (!chunks_.empty()) {
      chunk = std::move(chunks_.back());
      chunks_.pop_back();
    }
    if (!thread_.joinable() && !stopping_) thread_ = std::thread([this] { Refill(); });
  }
  changed_.NotifyAll();
  return chunk.empty() ? Buffer::Allocate(chunk_bytes_) : chunk;
}

size_t ChunkReserve::ready() const {
  const MutexLock lock(mutex_);
  return chunks_.size();
}

bool ChunkReserve::WaitUntilWanted() {
  const MutexLock lock(mutex_);
  while (!stopping_ && chunks_.size() >= ahead_) {
    changed_.WaitFor(mutex_, absl::InfiniteDuration());
  }
  return !stopping_;
}

void ChunkReserve::Refill() {
  // Signals are for the program's own threads.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  pthread_setname_np(pthread_self(), "row-memory");
  while (WaitUntilWanted()) {
    Buffer chunk = NewTouchedChunk(chunk_bytes_);
    const MutexLock lock(mutex_);
    chunks_.push_back(std::move(chunk));
  }
}

}  // namespace covey::server
