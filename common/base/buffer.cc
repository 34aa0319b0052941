// SPDX-License-Identifier: Apache-2.0
#include "common/base/buffer.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace covey {
namespace {

constexpr size_t kCacheLine = 64;
constexpr size_t kHugePage = size_t{2} << 20;

// Memory that is aligned to a cache line. A pointer to malloc's block lies before its first byte.
//
// posix_memalign of glibc before 2.38 does not reuse a freed block for another one of its size
// unless the block's neighbours are free, too: in a program that allocates and frees all the time,
// memory grew to nine times the most that was in use.
uint8_t* AllocateAligned(size_t size) {
  constexpr size_t kPointer = sizeof(void*);
  void* const block = std::malloc(size + kCacheLine - 1 + kPointer);
  if (block == nullptr) throw std::bad_alloc();
  const uintptr_t least = reinterpret_cast<uintptr_t>(block) + kPointer;
  uint8_t* const start = static_cast<uint8_t*>(block) + kPointer + (-least & (kCacheLine - 1));
  std::memcpy(start - kPointer, &block, kPointer);
  return start;
}

void FreeAligned(uint8_t* start) {
  void* block = nullptr;
  std::memcpy(&block, start - sizeof(block), sizeof(block));
  std::free(block);
}

}  // namespace

Buffer Buffer::Allocate(size_t size) {
  if (size >= kHugePage) {
    // A gap for alignment before each block, as in AllocateAligned, could take a huge page itself.
    void* memory = nullptr;
    if (posix_memalign(&memory, kHugePage, size) != 0) throw std::bad_alloc();
    madvise(memory, size, MADV_HUGEPAGE);
    return Borrow(static_cast<uint8_t*>(memory), size, [memory] { std::free(memory); });
  }
  Buffer buffer;
  buffer.storage_ = new Storage;
  buffer.storage_->writable = AllocateAligned(size);
  buffer.data_ = buffer.storage_->writable;
  buffer.size_ = size;
  return buffer;
}

Buffer Buffer::CopyOf(std::span<const uint8_t> bytes) {
  Buffer buffer = Allocate(bytes.size());
  if (!bytes.empty()) std::memcpy(buffer.MutableData(), bytes.data(), bytes.size());
  return buffer;
}

Buffer Buffer::Wrap(const void* data, size_t size, std::function<void()> release) {
  Buffer buffer;
  buffer.storage_ = new Storage;
  buffer.storage_->release = std::move(release);
  buffer.data_ = static_cast<const uint8_t*>(data);
  buffer.size_ = size;
  return buffer;
}

Buffer Buffer::Borrow(uint8_t* data, size_t size, std::function<void()> release) {
  COVEY_CHECK(release != nullptr);
  Buffer buffer = Wrap(data, size, std::move(release));
  buffer.storage_->writable = data;
  return buffer;
}

Buffer Buffer::Lend(const void* data, size_t size, std::function<void()> release) {
  Buffer buffer = Wrap(data, size, std::move(release));
  buffer.storage_->is_lent = true;
  return buffer;
}

uint8_t* Buffer::MutableData() {
  COVEY_CHECK(IsUnique() && storage_->writable != nullptr);
  return storage_->writable + (data_ - storage_->writable);
}

Buffer Buffer::Slice(size_t offset, size_t size) const {
  COVEY_CHECK(offset <= size_ && size <= size_ - offset);
  Buffer slice(*this);
  slice.data_ = data_ + offset;
  slice.size_ = size;
  return slice;
}

void Buffer::Drop(Storage* storage) {
  if (storage->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (storage->release) {
    storage->release();
  } else if (storage->writable != nullptr) {
    FreeAligned(storage->writable);
  }
  delete storage;
}

}  // namespace covey
