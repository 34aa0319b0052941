// SPDX-License-Identifier: Apache-2.0
#include "scheduler/work/range_set.h"

#include <algorithm>
#include <iterator>

namespace covey::scheduler {

void RangeSet::Add(Range range) {
  if (range.count == 0) return;
  uint64_t first = range.first;
  uint64_t end = range.first + range.count;
  auto at = ends_.upper_bound(first);
  // A range that ends where this one begins is a neighbor, too.
  if (at != ends_.begin() && std::prev(at)->second >= first) --at;
  while (at != ends_.end() && at->first <= end) {
    first = std::min(first, at->first);
    end = std::max(end, at->second);
    size_ -= at->second - at->first;
    at = ends_.erase(at);
  }
  ends_.emplace_hint(at, first, end);
  size_ += end - first;
}

std::vector<RangeSet::Range> RangeSet::Remove(Range range) {
  std::vector<Range> removed;
  const uint64_t end = range.first + range.count;
  auto at = ends_.upper_bound(range.first);
  if (at != ends_.begin() && std::prev(at)->second > range.first) --at;
  while (at != ends_.end() && at->first < end) {
    const auto [old_first, old_end] = *at;
    const uint64_t cut_first = std::max(old_first, range.first);
    const uint64_t cut_end = std::min(old_end, end);
    removed.push_back({cut_first, cut_end - cut_first});
    size_ -= cut_end - cut_first;
    at = ends_.erase(at);
    if (old_first < cut_first) ends_.emplace(old_first, cut_first);
    if (cut_end < old_end) ends_.emplace(cut_end, old_end);
  }
  return removed;
}

std::vector<RangeSet::Range> RangeSet::Missing(Range range) const {
  std::vector<Range> missing;
  uint64_t next = range.first;
  const uint64_t end = range.first + range.count;
  auto at = ends_.upper_bound(next);
  if (at != ends_.begin()) next = std::max(next, std::prev(at)->second);
  for (; at != ends_.end() && at->first < end; ++at) {
    if (next < at->first) missing.push_back({next, at->first - next});
    next = at->second;
  }
  if (next < end) missing.push_back({next, end - next});
  return missing;
}

RangeSet::Range RangeSet::LowestIn(Range bounds, uint64_t count_max) const {
  auto at = ends_.upper_bound(bounds.first);
  if (at != ends_.begin() && std::prev(at)->second > bounds.first) --at;
  if (at == ends_.end()) return {};
  const uint64_t first = std::max(at->first, bounds.first);
  const uint64_t end = std::min(at->second, bounds.first + bounds.count);
  return first < end ? Range{first, std::min(end - first, count_max)} : Range{};
}

std::vector<RangeSet::Range> RangeSet::ranges() const {
  std::vector<Range> ranges;
  for (const auto& [first, end] : ends_) ranges.push_back({first, end - first});
  return ranges;
}

}  // namespace covey::scheduler
