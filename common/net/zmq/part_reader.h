// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <zmq.h>

#include <cstdint>
#include <span>

#include "common/base/buffer.h"
#include "common/net/zmq/zmq_part.h"
#include "common/net/zmq/zmq_socket.h"

namespace covey {

// Receives the parts of one message, one after the other. `socket` outlives it. Actor-confined.
class PartReader {
 public:
  explicit PartReader(ZmqSocket& socket) : socket_(socket.handle()) {}

  // False when the message has no further part; at the first call, when there is no message.
  bool Next() {
    if (!more_ || zmq_msg_recv(part_.get(), socket_, ZMQ_DONTWAIT) < 0) return false;
    more_ = part_.more();
    return true;
  }
  // Drops the parts that are left.
  void SkipRest() {
    while (Next()) {
    }
  }

  // Whether parts are left.
  bool more() const { return more_; }
  // Of the present part.
  std::span<const uint8_t> bytes() { return {part_.data(), part_.size()}; }
  Buffer TakeFrame() { return part_.TakeFrame(); }

 private:
  void* const socket_;
  ZmqPart part_;
  bool more_ = true;
};

}  // namespace covey
