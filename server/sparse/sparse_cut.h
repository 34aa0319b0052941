// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/btree_map.h"
#include "server/sparse/row_piece.h"
#include "server/sparse/sparse_shard.h"

namespace covey::server {

// The rows of a shard as they were at one version, read piece by piece while the shard goes on; for
// snapshots, and for servers that join a chain. After them the keys that waited for admission,
// likewise.
//
//     rows by place   ├──── read ────┤──────── not read yet ────────┤
//                                  next          a row that changes here is saved before
//
// An update copies the row as it was, if it is the row's first update since the cut and the row has
// not been read yet. So nothing stops, a row is copied at most once, and the copies go as the rows
// are read. Rows that are made after the cut are no part of it.
//
// Actor-confined, on the shard's thread; the shard stays as long as its cuts. Deterministic.
// Memory: a bit for each row of the shard and each key that waits, and the copies.
class SparseCut {
 public:
  ~SparseCut();
  SparseCut(const SparseCut&) = delete;

  uint64_t rows() const { return rows_.size; }
  uint64_t pending() const { return pending_.size; }  // keys that waited
  uint64_t version() const { return version_; }
  uint64_t samples() const { return samples_; }
  const SparseShard::Totals& totals() const { return totals_; }

  RowLayout layout() const { return rows_.layout; }
  // The next rows, ascending by MixBits(key): as many as fit, and at least one. Empty when all have
  // been read.
  RowPiece Next(size_t bytes_max) { return NextOf(rows_, bytes_max); }
  // The same of keys that waited, of kPendingLayout.
  RowPiece NextPending(size_t bytes_max) { return NextOf(pending_, bytes_max); }
  // Of copies.
  size_t held_bytes() const { return rows_.held_bytes() + pending_.held_bytes(); }

 private:
  friend class SparseShard;
  // A row as it was; its values, as they are stored, and its slots, one after the other.
  struct Copy {
    uint32_t stamp;
    uint32_t updates;
    std::vector<uint8_t> bytes;
  };
  // The rows, or the keys that waited.
  struct Part {
    Part(const RowLayout& layout, const RowNumbers& numbers);
    // Whether what has the number now is no part of the cut, or has been saved.
    bool IsSettled(uint32_t number) const { return number > made || settled[number]; }
    size_t held_bytes() const { return saved.size() * layout.row_bytes(); }

    const RowLayout layout;
    const uint64_t size;
    const uint32_t made;  // greater numbers are no part of it

    std::vector<bool> settled;              // by number
    absl::btree_map<uint64_t, Copy> saved;  // by place
    uint64_t next = 0;                      // places below it have been read
    bool is_done = false;
  };

  explicit SparseCut(std::shared_ptr<SparseShard> shard);
  // The entry, or its row, is about to change, or to go.
  void Save(const IndexEntry& entry);
  SparseRow RowOf(uint64_t place, const Copy& copy, const RowLayout& layout) const;
  RowPiece NextOf(Part& part, size_t bytes_max);
  Part& PartWith(const IndexEntry& entry) { return IsPending(entry) ? pending_ : rows_; }

  const std::shared_ptr<SparseShard> shard_;
  const uint64_t version_;
  const uint64_t samples_;
  const SparseShard::Totals totals_;

  Part rows_;
  Part pending_;
  std::vector<SparseRow> found_;
};

}  // namespace covey::server
