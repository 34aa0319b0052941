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
// again once the peer has let go of it, in any order. Ranges are taken from the lowest offset on,
// so that the same memory, which is likely to be in a cache, is used again and again.
//
// Actor-confined. Deterministic, given what the peer releases.
class FrameSpace {
 public:
  // One use of a range. The peer names it when it releases it.
  struct Use {
    uint32_t place = 0;
    uint32_t number = 0;  // differs from that of the place's earlier uses
  };
  struct Range {
    size_t offset = 0;
    size_t bytes = 0;
    Use use;
  };

  // `released`: by place, the newest use that the peer has let go of. At most as many ranges are in
  // use as it has places.
  FrameSpace(size_t bytes, std::span<const std::atomic<uint32_t>> released);

  // A range of at least `bytes`, from a multiple of 64 on; nullopt: there is no room now.
  // Precondition: `bytes` > 0.
  std::optional<Range> Take(size_t bytes);
  // For a range that the peer was never told of.
  void GiveBack(const Range& range);

 private:
  // Frees what the peer has let go of: up to the first range that it has not, or all of them.
  enum class Look { kAtTheOldest, kAtAll };
  void TakeBack(Look look);
  bool IsReleased(const Use& use) const;
  void Free(const Range& range);
  std::optional<Range> TakeFree(size_t bytes);

  const std::span<const std::atomic<uint32_t>> released_;
  absl::btree_map<size_t, size_t> free_;  // offset -> bytes; no two of them touch
  std::vector<uint32_t> free_places_;
  std::vector<uint32_t> numbers_;  // of the newest use, by place
  std::deque<Range> in_use_;       // oldest first
};

}  // namespace covey
