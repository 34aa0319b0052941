// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/btree_map.h"

namespace covey {

// Where large frames lie in a region. The sender takes a range for each frame; the range is free
// again once the peer has released it, in any order. Ranges are taken from the lowest offset on, so
// that the same memory, which is likely to be in a cache, is used again and again.
//
// Actor-confined. Deterministic, given what the peer releases.
class FrameSpace {
 public:
  // One use of a range. The peer names it when it releases the range.
  struct Use {
    uint32_t slot = 0;
    uint32_t generation = 0;  // of the slot; each use has another one

    friend bool operator==(const Use&, const Use&) = default;
  };
  struct Range {
    size_t offset = 0;
    size_t bytes = 0;
    Use use;
  };

  // `released`: by slot, the newest generation that the peer has released. At most as many ranges
  // are in use as there are slots.
  FrameSpace(size_t bytes, std::span<const std::atomic<uint32_t>> released);

  // A range of at least `bytes`, aligned to 64; nullopt: there is no room now.
  // Precondition: `bytes` > 0.
  std::optional<Range> Take(size_t bytes);
  // For a range that the peer was never told of.
  void GiveBack(const Range& range);

 private:
  // Frees ranges that the peer has released: the oldest ones, or all of them.
  void ReclaimOldest();
  void ReclaimAll();
  bool IsReleased(const Use& use) const;
  void Free(const Range& range);
  std::optional<Range> TakeFree(size_t bytes);

  const std::span<const std::atomic<uint32_t>> released_;
  absl::btree_map<size_t, size_t> free_;  // offset -> bytes; no two of them touch
  std::vector<uint32_t> free_slots_;
  std::vector<uint32_t> generations_;  // the newest, by slot
  std::deque<Range> in_use_;           // oldest first
};

}  // namespace covey
