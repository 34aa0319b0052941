// SPDX-License-Identifier: Apache-2.0
#include "common/cluster/dedup_window.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "common/base/check.h"
#include "common/base/small_limits.h"
#include "common/cluster/limits.h"

namespace covey {
namespace {

// In the ring, marks a sequence that was skipped; no shard ever reaches this version.
constexpr uint64_t kNotReceived = std::numeric_limits<uint64_t>::max();
constexpr size_t kFirstEntries = 4;
static_assert(std::has_single_bit(kDedupWindow));

size_t Window() { return LimitInForce(kDedupWindow, kSmallDedupWindow); }

}  // namespace

uint64_t DedupWindow::Floor() const {
  const size_t window = Window();
  return highest_ >= window ? highest_ - window + 1 : 0;
}

DedupWindow::Finding DedupWindow::Find(uint64_t sequence) const {
  if (versions_.empty() || sequence > highest_) return {.verdict = Verdict::kNew};
  if (sequence < Floor()) return {.verdict = Verdict::kTooOld};
  if (sequence < lowest_ || At(sequence) == kNotReceived) return {.verdict = Verdict::kNew};
  return {.verdict = Verdict::kDuplicate, .version = Version(At(sequence))};
}

void DedupWindow::Reserve(uint64_t lowest, uint64_t highest) {
  const size_t wanted = std::max<size_t>(kFirstEntries, std::bit_ceil(highest - lowest + 1));
  if (wanted <= versions_.size()) return;
  std::vector<uint64_t> larger(wanted, kNotReceived);
  if (!versions_.empty()) {
    for (uint64_t sequence = highest_ + 1; sequence-- > std::max(lowest, lowest_);) {
      larger[sequence & (wanted - 1)] = At(sequence);
    }
  }
  versions_ = std::move(larger);
}

void DedupWindow::Record(uint64_t sequence, Version version) {
  COVEY_CHECK(Find(sequence).verdict == Verdict::kNew);
  if (versions_.empty()) {
    Reserve(sequence, sequence);
    lowest_ = highest_ = sequence;
  } else if (sequence < lowest_) {
    Reserve(sequence, highest_);
    for (uint64_t skipped = sequence; skipped < lowest_; ++skipped) At(skipped) = kNotReceived;
    lowest_ = sequence;
  } else if (sequence > highest_) {
    const uint64_t before = highest_;
    const size_t window = Window();
    const uint64_t floor = sequence >= window ? sequence - window + 1 : 0;
    const uint64_t lowest = std::min(std::max(lowest_, floor), sequence);
    Reserve(lowest, sequence);
    lowest_ = lowest;
    highest_ = sequence;
    for (uint64_t skipped = std::max(before + 1, lowest_); skipped < sequence; ++skipped) {
      At(skipped) = kNotReceived;
    }
  }
  At(sequence) = version.value();
}

void DedupWindow::ForEach(absl::FunctionRef<void(uint64_t sequence, Version version)> visit) const {
  if (versions_.empty()) return;
  // The loop counts entries: a comparison with highest_ would never end if that is the largest
  // number.
  const uint64_t first = std::max(lowest_, Floor());
  const uint64_t count = highest_ - first + 1;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t sequence = first + i;
    if (At(sequence) != kNotReceived) visit(sequence, Version(At(sequence)));
  }
}

void DedupWindow::SetVersion(uint64_t sequence, Version version) {
  if (Find(sequence).verdict == Verdict::kDuplicate) At(sequence) = version.value();
}

}  // namespace covey
