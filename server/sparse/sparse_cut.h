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
// snapshots, and for servers that join a chain.
//
//     rows by place   ├──── read ────┤──────── not read yet ────────┤
//                                  next_        a row that changes here is saved before
//
// An update copies the row as it was, if it is the row's first update since the cut and the row has
// not been read yet. So nothing stops, a row is copied at most once, and the copies go as the rows
// are read. Rows that are made after the cut are no part of it.
//
// Actor-confined, on the shard's thread; the shard stays as long as its cuts. Deterministic.
// Memory: a bit for each row of the shard, and the copies.
class SparseCut {
 public:
  ~SparseCut();
  SparseCut(const SparseCut&) = delete;

  uint64_t rows() const { return rows_; }
  uint64_t version() const { return version_; }
  uint64_t samples() const { return samples_; }

  RowLayout layout() const { return layout_; }
  // The next rows, ascending by MixBits(key): as many as fit, and at least one. Empty when all have
  // been read.
  RowPiece Next(size_t bytes_max);
  // Of copies.
  size_t held_bytes() const { return saved_.size() * row_bytes_; }

 private:
  friend class SparseShard;
  // A row as it was; the elements of its values and slots, one after the other.
  struct Copy {
    uint32_t stamp;
    uint32_t updates;
    std::vector<float> elements;
  };

  explicit SparseCut(std::shared_ptr<SparseShard> shard);
  // The row is about to change, or to go.
  void Save(const IndexEntry& entry);
  SparseRow RowOf(uint64_t place, const Copy& copy) const;
  // Whether the shard's row is no part of the cut, or has been saved.
  bool IsSettled(uint32_t row) const;

  const std::shared_ptr<SparseShard> shard_;
  const RowLayout layout_;
  const size_t row_bytes_;
  const uint64_t rows_;
  const uint64_t version_;
  const uint64_t samples_;
  const uint32_t rows_made_;  // rows with greater numbers are no part of it

  std::vector<bool> settled_;              // by row number
  absl::btree_map<uint64_t, Copy> saved_;  // by place
  uint64_t next_ = 0;                      // places below it have been read
  bool is_done_ = false;
  std::vector<SparseRow> found_;
};

}  // namespace covey::server
