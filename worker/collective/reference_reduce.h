#pragma once

#include <span>
#include <vector>

#include "worker/collective/schedule.h"

namespace covey::worker {

// What a reduce-scatter must give, bit for bit, written as plainly as possible: part i is the sum
// of the members' elements in the order i + 1, i + 2, ..., i (wrapping), each addition rounded to
// float. `members` holds each member's whole tensor, `parts` one range per member. The result is
// the whole tensor. For tests and for single-process runs that must equal a group's.
inline std::vector<float> ReferenceReduce(std::span<const std::vector<float>> members,
                                          std::span<const PartRange> parts) {
  const size_t size = members.size();
  std::vector<float> sum = members[0];
  for (size_t part = 0; part < size; ++part) {
    for (size_t i = parts[part].first; i < parts[part].first + parts[part].count; ++i) {
      float element = members[(part + 1) % size][i];
      for (size_t k = 2; k <= size; ++k) element += members[(part + k) % size][i];
      sum[i] = element;
    }
  }
  return sum;
}

}  // namespace covey::worker
