// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>

#include "common/base/check.h"

namespace covey {

// A reference to a range of bytes that several holders share: a tensor frame on its way from a
// table to a socket, or from a socket to a table, without a copy.
//
// Thread-safety: handles may be copied and dropped on any thread; the bytes must not be written
// while more than one handle exists (MutableData checks). Lifetime: the last handle frees the
// memory or calls the release function. Memory is 64-byte aligned when allocated here; from 2 MiB
// on it is aligned to and advised for huge pages, because first touch of 4 KiB pages runs at 1.6
// GB/s on the reference machine and huge ones at 9.
//
// Memory may be lent by another process, which has only a bounded amount of it and waits to have it
// back. So a holder that keeps a received buffer beyond the call in which it was delivered keeps
// Kept() of it. A slice of a lent buffer is lent, too.
class Buffer {
 public:
  Buffer() = default;
  // Uninitialized bytes.
  static Buffer Allocate(size_t size);
  static Buffer CopyOf(std::span<const uint8_t> bytes);
  // Memory with another owner. `release` runs once, on the thread that drops the last handle; until
  // then the memory must stay valid and unchanged.
  static Buffer Wrap(const void* data, size_t size, std::function<void()> release);
  // The same for memory that this buffer's holders may write, as if it were allocated here.
  static Buffer Borrow(uint8_t* data, size_t size, std::function<void()> release);
  // As Wrap, for memory that its owner waits for: is_lent() is true.
  static Buffer Lend(const void* data, size_t size, std::function<void()> release);

  Buffer(const Buffer& other) : storage_(other.storage_), data_(other.data_), size_(other.size_) {
    if (storage_ != nullptr) storage_->references.fetch_add(1, std::memory_order_relaxed);
  }
  Buffer(Buffer&& other) noexcept
      : storage_(std::exchange(other.storage_, nullptr)),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer other) noexcept {
    std::swap(storage_, other.storage_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Buffer() {
    if (storage_ != nullptr) Drop(storage_);
  }

  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::span<const uint8_t> bytes() const { return {data_, size_}; }
  // Whole elements only. Precondition: size() is a multiple of the element's size; callers refuse
  // other sizes before.
  template <typename T>
  std::span<const T> As() const {
    COVEY_CHECK(size_ % sizeof(T) == 0);
    return {reinterpret_cast<const T*>(data_), size_ / sizeof(T)};
  }

  // True when this is the only handle; what other threads did before dropping theirs is then
  // visible.
  bool IsUnique() const {
    return storage_ != nullptr && storage_->references.load(std::memory_order_acquire) == 1;
  }
  // Precondition: IsUnique(), and allocated here or borrowed.
  uint8_t* MutableData();
  template <typename T>
  std::span<T> MutableAs() {
    return {reinterpret_cast<T*>(MutableData()), size_ / sizeof(T)};
  }

  // The bytes [offset, offset + size) under a handle of their own; shares the memory.
  Buffer Slice(size_t offset, size_t size) const;

  bool is_lent() const { return storage_ != nullptr && storage_->is_lent; }
  // The same bytes in memory that may be kept: a copy if this buffer is lent, otherwise another
  // handle.
  Buffer Kept() const { return is_lent() ? CopyOf(bytes()) : *this; }

 private:
  struct Storage {
    std::atomic<uint32_t> references{1};
    uint8_t* writable = nullptr;  // null: wrapped or lent memory
    bool is_lent = false;
    std::function<void()> release;  // empty: allocated here
  };
  static void Drop(Storage* storage);

  Storage* storage_ = nullptr;
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace covey
