// SPDX-License-Identifier: Apache-2.0
#include "common/base/buffer_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <compare>
#include <cstdint>
#include <cstring>
#include <map>
#include <new>
#include <set>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"

namespace covey {
namespace {

constexpr size_t kCacheLine = 64;
constexpr size_t kBufferBytesMin = size_t{256} << 10;  // of a buffer in a slab
constexpr size_t kSlabBytes = size_t{8} << 20;
// Slabs without a buffer in use stay if they are this part of those with one, or less.
constexpr size_t kRetainedPart = 10;

uint8_t* Map(size_t bytes) {
  void* const map =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) throw std::bad_alloc();
  return static_cast<uint8_t*>(map);
}

}  // namespace

// Shared by the pool and by the slabs in use, so that the last of them frees the memory.
class BufferPool::Slabs : public std::enable_shared_from_this<Slabs> {
 public:
  explicit Slabs(size_t retained_bytes_max) : retained_bytes_max_(retained_bytes_max) {}
  ~Slabs() {
    for (const auto& [key, slab] : slabs_) munmap(slab.memory, slab.bytes);
  }
  Slabs(const Slabs&) = delete;
  Slabs& operator=(const Slabs&) = delete;

  Buffer Take(size_t size) {
    const size_t stride = (size + kCacheLine - 1) / kCacheLine * kCacheLine;
    const MutexLock lock(mutex_);
    // From the oldest slab, so that younger ones run empty.
    const auto found = with_free_.lower_bound({.stride = stride});
    const bool is_found = found != with_free_.end() && found->stride == stride;
    Slab& slab = is_found ? slabs_.at(*found) : Add(stride);
    if (slab.IsIdle()) {
      std::erase(idle_, &slab);
      slab.owner = shared_from_this();
    }
    uint8_t* const memory = slab.free.back();
    slab.free.pop_back();
    free_bytes_ -= stride;
    if (slab.free.empty()) with_free_.erase(slab.key);
    // Two pointers: std::function keeps them without an allocation.
    return Buffer::Borrow(memory, size, [&slab, memory] {
      const std::shared_ptr<Slabs> slabs = slab.owner;  // outlives the call
      slabs->Return(slab, memory);
    });
  }

  size_t free_bytes() const {
    const MutexLock lock(mutex_);
    return free_bytes_;
  }

 private:
  struct Key {
    size_t stride = 0;    // from one buffer to the next
    uint64_t number = 0;  // of the slab, in the order of their making
    auto operator<=>(const Key&) const = default;
  };
  struct Slab {
    Key key;
    uint8_t* memory = nullptr;
    size_t bytes = 0;
    size_t buffers = 0;
    std::vector<uint8_t*> free;    // the last one returned is the next one taken
    std::shared_ptr<Slabs> owner;  // while a buffer is in use
    bool IsIdle() const { return free.size() == buffers; }
  };

  Slab& Add(size_t stride) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto other = slabs_.lower_bound({.stride = stride});
    const bool is_first = other == slabs_.end() || other->first.stride != stride;
    const Key key{.stride = stride, .number = next_number_++};
    const size_t buffers = std::max<size_t>(1, kSlabBytes / stride);
    const size_t bytes = buffers * stride;
    uint8_t* const memory = Map(bytes);
    // A hint: it fails on Linux before 5.14, and pages are then touched one by one.
    if (!is_first) madvise(memory, bytes, MADV_POPULATE_WRITE);
    Slab& slab = slabs_[key];
    slab = {
        .key = key, .memory = memory, .bytes = bytes, .buffers = buffers, .free = {}, .owner = {}};
    for (size_t i = buffers; i > 0; --i) slab.free.push_back(memory + (i - 1) * stride);
    with_free_.insert(key);
    free_bytes_ += bytes;
    bytes_ += bytes;
    idle_.push_back(&slab);
    return slab;
  }

  void Return(Slab& slab, uint8_t* memory) {
    const MutexLock lock(mutex_);
    slab.free.push_back(memory);
    with_free_.insert(slab.key);
    free_bytes_ += slab.key.stride;
    if (!slab.IsIdle()) return;
    slab.owner = nullptr;
    idle_.push_back(&slab);
    while (idle_.size() > 1 && IdleBytes() > RetainedBytesMax()) Unmap(*idle_.front());
  }

  size_t IdleBytes() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    size_t bytes = 0;
    for (const Slab* slab : idle_) bytes += slab->bytes;
    return bytes;
  }

  size_t RetainedBytesMax() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return std::max(retained_bytes_max_, (bytes_ - IdleBytes()) / kRetainedPart);
  }

  // Precondition: it is idle.
  void Unmap(Slab& slab) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    munmap(slab.memory, slab.bytes);
    bytes_ -= slab.bytes;
    free_bytes_ -= slab.bytes;
    std::erase(idle_, &slab);
    with_free_.erase(slab.key);
    slabs_.erase(Key(slab.key));
  }

  const size_t retained_bytes_max_;

  mutable Mutex mutex_;
  std::map<Key, Slab> slabs_ ABSL_GUARDED_BY(mutex_);
  std::set<Key> with_free_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_number_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of all slabs
  size_t free_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // Slabs without a buffer in use, in the order in which they became so.
  std::vector<Slab*> idle_ ABSL_GUARDED_BY(mutex_);
};

BufferPool::BufferPool(size_t retained_bytes_max)
    : slabs_(std::make_shared<Slabs>(retained_bytes_max)) {}

Buffer BufferPool::Take(size_t size) {
  return size < kBufferBytesMin ? Buffer::Allocate(size) : slabs_->Take(size);
}

Buffer BufferPool::Kept(const Buffer& buffer) {
  if (!buffer.is_lent()) return buffer;
  Buffer copy = Take(buffer.size());
  std::memcpy(copy.MutableData(), buffer.data(), buffer.size());
  return copy;
}

size_t BufferPool::free_bytes() const { return slabs_->free_bytes(); }

}  // namespace covey
