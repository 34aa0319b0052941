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

// A frame in libzmq's queues.
struct HeldFrame {
  Buffer frame;
  std::shared_ptr<UnsentBytes> unsent;

  ~HeldFrame() {
    if (unsent != nullptr) *unsent -= frame.size();
  }
};

void DropFrame(void* /*data*/, void* held) { delete static_cast<HeldFrame*>(held); }

}  // namespace

ZmqPart::ZmqPart(size_t size, std::shared_ptr<UnsentBytes> unsent) {
  if (unsent == nullptr || size <= kCopiedOutBytesMax) {
    Allocate(size);
  } else {
    Refer(Buffer::Allocate(size), std::move(unsent));
  }
}

ZmqPart::ZmqPart(Buffer frame, std::shared_ptr<UnsentBytes> unsent) {
  if (frame.size() <= kCopiedOutBytesMax) {
    Allocate(frame.size());
    if (!frame.empty()) std::memcpy(data(), frame.data(), frame.size());
  } else {
    Refer(std::move(frame), std::move(unsent));
  }
}

void ZmqPart::Allocate(size_t size) {
  if (zmq_msg_init_size(&part_, size) != 0) throw std::bad_alloc();
}

void ZmqPart::Refer(Buffer frame, std::shared_ptr<UnsentBytes> unsent) {
  if (unsent != nullptr) *unsent += frame.size();
  std::unique_ptr<HeldFrame> held(
      new HeldFrame{.frame = std::move(frame), .unsent = std::move(unsent)});
  void* data = const_cast<uint8_t*>(held->frame.data());
  if (zmq_msg_init_data(&part_, data, held->frame.size(), DropFrame, held.get()) != 0) {
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
