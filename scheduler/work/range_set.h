// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace covey::scheduler {

// A set of numbers, stored as merged ranges: its size grows with the number of gaps. A value; pure.
// Ends of ranges are at most 2^63.
class RangeSet {
 public:
  struct Range {
    uint64_t first = 0;
    uint64_t count = 0;
  };

  // Numbers that are in the set already stay. O(log n + merged ranges).
  void Add(Range range);
  void Add(const std::vector<Range>& ranges) {
    for (const Range& range : ranges) Add(range);
  }
  // Returns the part of `range` that was in the set, in growing order.
  std::vector<Range> Remove(Range range);
  // The part of `range` that is not in the set, in growing order.
  std::vector<Range> Missing(Range range) const;

  bool empty() const { return ends_.empty(); }
  // How many numbers are in the set.
  uint64_t size() const { return size_; }
  // The lowest numbers within `bounds`: at most `count_max`, and of one range; a count of 0 = there
  // are none. O(log n).
  Range LowestIn(Range bounds, uint64_t count_max) const;
  // In growing order.
  std::vector<Range> ranges() const;

 private:
  std::map<uint64_t, uint64_t> ends_;  // of each range, by its first number
  uint64_t size_ = 0;
};

}  // namespace covey::scheduler
