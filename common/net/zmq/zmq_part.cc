// SPDX-License-Identifier: Apache-2.0
#include "common/net/zmq/zmq_part.h"

#include <cstring>
#include <memory>
#include <new>
#include <utility>

namespace covey {
namespace {

// Below this size a copy, about 1 us, is cheaper than handing a reference to another thread and
// waiting until it is returned.
constexpr size_t kCopiedOutBytesMax = 32 << 10;
// libzmq reads the network in pieces of 8 KiB; a larger message has memory of its own.
constexpr size_t kCopiedInBytesMax = 8192;
constexpr size_t kAlignment = 8;

void DropFrame(void* /*data*/, void* frame) { delete static_cast<Buffer*>(frame); }

}  // namespace

ZmqPart::ZmqPart(size_t size) {
  if (zmq_msg_init_size(&part_, size) != 0) throw std::bad_alloc();
}

ZmqPart::ZmqPart(Buffer frame) {
  if (frame.size() <= kCopiedOutBytesMax) {
    if (zmq_msg_init_size(&part_, frame.size()) != 0) throw std::bad_alloc();
    if (!frame.empty()) std::memcpy(data(), frame.data(), frame.size());
    return;
  }
  auto held = std::make_unique<Buffer>(std::move(frame));
  void* data = const_cast<uint8_t*>(held->data());
  if (zmq_msg_init_data(&part_, data, held->size(), DropFrame, held.get()) != 0) {
    throw std::bad_alloc();
  }
  held.release();
}

Buffer ZmqPart::TakeFrame() {
  const bool aligned = reinterpret_cast<uintptr_t>(data()) % kAlignment == 0;
  if (size() <= kCopiedInBytesMax || !aligned) return Buffer::CopyOf({data(), size()});
  // A plain pointer, because std::function stores it without an allocation of its own.
  ZmqPart* kept = std::make_unique<ZmqPart>(std::move(*this)).release();
  return Buffer::Borrow(kept->data(), kept->size(), [kept] { delete kept; });
}

}  // namespace covey
