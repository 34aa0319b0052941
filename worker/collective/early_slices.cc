// SPDX-License-Identifier: Apache-2.0
#include "worker/collective/early_slices.h"

#include <utility>

#include "common/cluster/limits.h"

namespace covey::worker {
namespace {

size_t BytesOf(const Message& message) {
  size_t bytes = message.envelope.ByteSizeLong();
  for (const Buffer& frame : message.frames) bytes += frame.size();
  return bytes;
}

}  // namespace

bool EarlySlices::HasRoom(const Message& message, size_t other_bytes, size_t share) const {
  return bytes_ + other_bytes + BytesOf(message) <= kGroupEarlyBytesMax / share &&
         count_ < kGroupEarlySlicesMax / share;
}

void EarlySlices::Keep(const CollectiveId& id, const Message& message) {
  bytes_ += BytesOf(message);
  ++count_;
  Message& kept = slices_[id].emplace_back(message);
  for (Buffer& frame : kept.frames) frame = frame.Kept();
}

std::deque<Message> EarlySlices::Take(const CollectiveId& id) {
  std::deque<Message> taken;
  auto entry = slices_.lower_bound({.stream = id.stream, .sequence = 0});
  while (entry != slices_.end() && entry->first <= id) {
    for (const Message& message : entry->second) {
      bytes_ -= BytesOf(message);
      --count_;
    }
    if (entry->first == id) taken = std::move(entry->second);
    entry = slices_.erase(entry);
  }
  return taken;
}

void EarlySlices::Clear() {
  slices_.clear();
  bytes_ = 0;
  count_ = 0;
}

}  // namespace covey::worker
