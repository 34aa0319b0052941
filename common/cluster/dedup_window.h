// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/cluster/ids.h"

namespace covey {

// Which pushes of one producer a shard has received, so that no push counts twice. Part of the
// shard's state: it is replicated, moved and saved with the shard.
//
// Remembers the last kDedupWindow sequences up to the highest one seen, and for each the version at
// which it was applied. Sequences may arrive in any order and may be skipped. Memory is 8 bytes per
// sequence between the lowest and the highest remembered one; a producer that pushed a few times
// costs a few bytes.
//
// Actor-confined. Pure.
class DedupWindow {
 public:
  enum class Verdict {
    kNew,
    kDuplicate,
    // Below the window: whether the push was received is unknown, so it must not be applied.
    kTooOld,
  };
  struct Finding {
    Verdict verdict = Verdict::kNew;
    // For kDuplicate: the version at which the push was applied; 0 = received, not yet applied.
    Version version;
  };

  Finding Find(uint64_t sequence) const;

  // Notes the receipt of a sequence that Find calls kNew (checked). `version` 0 = not yet applied.
  void Record(uint64_t sequence, Version version);

  // Notes the application of a sequence recorded before. No effect when the sequence has left the
  // window since.
  void SetVersion(uint64_t sequence, Version version);

  // Visits all remembered sequences in growing order. Recording them in this order makes an equal
  // window.
  void ForEach(absl::FunctionRef<void(uint64_t sequence, Version version)> visit) const;

  // Lowest sequence for which a duplicate can still be recognized.
  uint64_t Floor() const;
  // Highest sequence recorded; 0 when there is none.
  uint64_t highest() const { return highest_; }
  size_t memory_bytes() const { return versions_.capacity() * sizeof(uint64_t); }

 private:
  // Grows so that the sequences lowest … highest fit.
  void Reserve(uint64_t lowest, uint64_t highest);
  uint64_t& At(uint64_t sequence) { return versions_[sequence & (versions_.size() - 1)]; }
  uint64_t At(uint64_t sequence) const { return versions_[sequence & (versions_.size() - 1)]; }

  // Ring, indexed by the low bits of the sequence; its size is a power of two. Entries outside
  // lowest_ … highest_ are undefined.
  std::vector<uint64_t> versions_;
  uint64_t lowest_ = 0;
  uint64_t highest_ = 0;
};

}  // namespace covey
