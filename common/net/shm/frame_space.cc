// SPDX-License-Identifier: Apache-2.0
#include "common/net/shm/frame_space.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace covey {
namespace {

constexpr size_t kAlignment = 64;

}  // namespace

FrameSpace::FrameSpace(size_t bytes, std::span<const std::atomic<uint32_t>> released)
    : released_(released), generations_(released.size()) {
  COVEY_CHECK(bytes % kAlignment == 0);
  free_[0] = bytes;
  for (size_t slot = released.size(); slot > 0; --slot) {
    free_slots_.push_back(static_cast<uint32_t>(slot - 1));
  }
}

std::optional<FrameSpace::Range> FrameSpace::Take(size_t bytes) {
  COVEY_CHECK(bytes > 0);
  const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  ReclaimOldest();
  std::optional<Range> range = TakeFree(rounded);
  if (!range) {
    ReclaimAll();
    range = TakeFree(rounded);
  }
  if (range) in_use_.push_back(*range);
  return range;
}

std::optional<FrameSpace::Range> FrameSpace::TakeFree(size_t bytes) {
  if (free_slots_.empty()) return std::nullopt;
  const auto found = std::find_if(free_.begin(), free_.end(),
                                  [bytes](const auto& range) { return range.second >= bytes; });
  if (found == free_.end()) return std::nullopt;
  const auto [offset, size] = *found;
  free_.erase(found);
  if (size > bytes) free_[offset + bytes] = size - bytes;
  const uint32_t slot = free_slots_.back();
  free_slots_.pop_back();
  return Range{.offset = offset, .bytes = bytes, .use = {slot, ++generations_[slot]}};
}

void FrameSpace::GiveBack(const Range& range) {
  // A peer that breaks the rules may have released it before it was told of it.
  const size_t erased =
      std::erase_if(in_use_, [&](const Range& other) { return other.use == range.use; });
  if (erased > 0) Free(range);
}

void FrameSpace::ReclaimOldest() {
  while (!in_use_.empty() && IsReleased(in_use_.front().use)) {
    Free(in_use_.front());
    in_use_.pop_front();
  }
}

void FrameSpace::ReclaimAll() {
  std::erase_if(in_use_, [this](const Range& range) {
    if (!IsReleased(range.use)) return false;
    Free(range);
    return true;
  });
}

bool FrameSpace::IsReleased(const Use& use) const {
  // What the peer has read of the frame was read before.
  return released_[use.slot].load() == use.generation;
}

void FrameSpace::Free(const Range& range) {
  free_slots_.push_back(range.use.slot);
  size_t offset = range.offset;
  size_t bytes = range.bytes;
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && next->first == offset + bytes) {
    bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      before->second += bytes;
      return;
    }
  }
  free_[offset] = bytes;
}

}  // namespace covey
