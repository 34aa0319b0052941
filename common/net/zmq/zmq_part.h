// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <zmq.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "common/base/buffer.h"

namespace covey {

// Bytes of parts that libzmq holds until they are in the kernel; small parts apart. Thread-safe.
using UnsentBytes = std::atomic<size_t>;

// One part of a ZeroMQ message. Closes itself. Actor-confined.
class ZmqPart {
 public:
  // Empty; to be received into.
  ZmqPart() { zmq_msg_init(&part_); }
  // Uninitialized bytes. `unsent`, if there is one, counts them, unless they are few.
  explicit ZmqPart(size_t size, std::shared_ptr<UnsentBytes> unsent = nullptr);
  // Refers to the bytes of `frame` without a copy, unless the frame is small; libzmq's thread drops
  // the handle when they are in the kernel, or when the connection is closed.
  explicit ZmqPart(Buffer frame, std::shared_ptr<UnsentBytes> unsent = nullptr);
  // Leaves `other` empty.
  ZmqPart(ZmqPart&& other) noexcept : ZmqPart() { zmq_msg_move(&part_, &other.part_); }
  ~ZmqPart() { zmq_msg_close(&part_); }
  ZmqPart(const ZmqPart&) = delete;
  ZmqPart& operator=(const ZmqPart&) = delete;

  uint8_t* data() { return static_cast<uint8_t*>(zmq_msg_data(&part_)); }
  size_t size() const { return zmq_msg_size(&part_); }
  bool more() const { return zmq_msg_more(&part_) != 0; }
  zmq_msg_t* get() { return &part_; }

  // The received bytes as a frame, aligned to 8 bytes at least; leaves the part empty. Its only
  // holder may write it. Large ones stay where libzmq put them. Small or badly aligned ones are
  // copied: libzmq cuts small ones out of a larger read, which a handle would keep alive as a
  // whole.
  Buffer TakeFrame();

 private:
  // libzmq's own memory.
  void Allocate(size_t size);
  void Refer(Buffer frame, std::shared_ptr<UnsentBytes> unsent);

  zmq_msg_t part_;
};

}  // namespace covey
