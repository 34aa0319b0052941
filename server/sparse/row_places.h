// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "server/sparse/row_index.h"

namespace covey::server {

class SparseShard;

// Where the rows of one list of keys were when SparseShard last looked for them, so that it need
// not look again for the next read or update of the same list. Whoever keeps the list keeps this
// with it; the shard fills it and checks it, and what is no longer right is looked up again:
//
//   row numbers   right until a row or a waiting key of the shard is removed; a key that had no row
//                 is looked up each time
//   entries       of the index may have moved since; right when they have the row's number
//
// Actor-confined. Memory: 12 bytes per key, from the first use on.
class RowPlaces {
 public:
  size_t bytes() const {
    return rows_.capacity() * sizeof(uint32_t) + entries_.capacity() * sizeof(const IndexEntry*);
  }

 private:
  friend class SparseShard;

  std::weak_ptr<const SparseShard> shard_;  // in which they are; none: not looked up yet
  uint64_t removals_ = 0;                   // of the shard by then
  std::vector<uint32_t> rows_;              // of each key; 0 = it had none
  std::vector<const IndexEntry*> entries_;  // null: unknown
};

}  // namespace covey::server
