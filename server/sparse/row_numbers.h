// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace covey::server {

// Numbers from 1 on, for what lies in slabs. A number that is given back is the next one to be
// taken. Actor-confined. Memory: 4 bytes for each number that is free.
class RowNumbers {
 public:
  // The number that Take takes.
  uint32_t Next() const { return free_.empty() ? made_ + 1 : free_.back(); }
  // True: it was never in use before.
  bool Take() {
    if (free_.empty()) {
      ++made_;
      return true;
    }
    free_.pop_back();
    return false;
  }
  // Precondition: it is in use.
  void GiveBack(uint32_t number) { free_.push_back(number); }

  uint32_t made() const { return made_; }  // 1 .. made() are in use or unused
  const std::vector<uint32_t>& unused() const { return free_; }
  size_t in_use() const { return made_ - free_.size(); }
  size_t bytes() const { return free_.capacity() * sizeof(uint32_t); }

 private:
  uint32_t made_ = 0;
  std::vector<uint32_t> free_;
};

}  // namespace covey::server
