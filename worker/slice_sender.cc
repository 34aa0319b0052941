#include "worker/slice_sender.h"

#include <utility>

#include "common/cluster/limits.h"

namespace covey::worker {
namespace {

size_t BytesOf(const Message& message) {
  return message.frames.empty() ? 0 : message.frames[0].size();
}

}  // namespace

void SliceSender::Queue(uint64_t collective, Message message) {
  queued_.push_back({.collective = collective, .message = std::move(message)});
}

void SliceSender::Advance(Outbox& outbox, Released released) {
  TakeBack(released);
  while (!queued_.empty() && in_flight_.size() < kGroupSlicesInFlightMax) {
    Slice& next = queued_.front();
    const size_t bytes = BytesOf(next.message);
    if (bytes_in_flight_ > 0 && bytes_in_flight_ + bytes > kGroupBytesInFlightMax) break;
    bytes_in_flight_ += bytes;
    Slice sent{.collective = next.collective, .message = {}};
    sent.message.frames = next.message.frames;
    outbox.Send(std::move(next.message));
    in_flight_.push_back(std::move(sent));
    queued_.pop_front();
  }
  TakeBack(released);  // Messages without a frame have nothing to wait for.
}

void SliceSender::CancelQueued(Released released) {
  for (const Slice& slice : std::exchange(queued_, {})) released(slice.collective);
}

void SliceSender::TakeBack(Released released) {
  while (!in_flight_.empty()) {
    const Slice& oldest = in_flight_.front();
    if (!oldest.message.frames.empty() && !oldest.message.frames[0].IsUnique()) return;
    bytes_in_flight_ -= BytesOf(oldest.message);
    const uint64_t collective = oldest.collective;
    in_flight_.pop_front();
    released(collective);
  }
}

}  // namespace covey::worker
