// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/cluster/limits.h"
#include "common/optimizer/learning_rate.h"
#include "common/optimizer/row_optimizer.h"
#include "server/sparse/row_index.h"
#include "server/sparse/row_piece.h"
#include "server/sparse/row_slab.h"
#include "server/table/initializer.h"

namespace covey::server {

class SparseCut;

// The slots of a sparse table that a shard holds, and what a row of it is.
struct SparseShardConfig {
  uint64_t first_slot = 0;  // key_slots.h
  uint64_t slot_count = 0;  // at least 1
  size_t width = 0;         // elements of a row
  uint64_t rows_max = kRowsPerShardMax;
  InitializerConfig initializer = {};
  OptimizerConfig optimizer = {};
  LearningRateConfig learning_rate = {};
};

// Rows of a sparse float32 table: those whose keys lie in a range of slots, with the state of their
// optimizer, and the counts of updates and samples. Its owner decides which pushes are admitted.
//
// A row comes into being with the first update that holds its key. Before that, and so in every
// read, it has its first values, which are a function of the initializer's seed, the key and the
// column alone: element c of key k is element k * width + c (modulo 2^64) of a dense table. So a
// sparse table whose keys are 0, 1, 2, … begins with the bits of a dense one.
//
// Actor-confined. Deterministic: the rows depend on the config and on the sequence of Apply calls
// only. Memory: the width and the optimizer's slots, 4 bytes for each element, and about 40 bytes
// more per row.
class SparseShard : public std::enable_shared_from_this<SparseShard> {
 public:
  // INVALID_ARGUMENT: a part of the config is not valid, or not possible for rows.
  static absl::StatusOr<std::shared_ptr<SparseShard>> Create(const SparseShardConfig& config);
  // A new one of the same config.
  std::shared_ptr<SparseShard> Empty() const;
  SparseShard(const SparseShard&) = delete;

  // INVALID_ARGUMENT: a key lies outside the slots; names it, and the remedy.
  absl::Status CheckHolds(std::span<const uint64_t> keys) const;
  // One update by the mean of a gradient over `samples` training examples, given as their sum: a
  // row of `width` elements for each key. The learning rate is that of the total of samples, these
  // included. An update may hold no key. Returns how many rows it did not make because the shard
  // holds rows_max; the gradients of these are lost.
  //
  // INVALID_ARGUMENT: the gradient has another length, a key lies outside the slots or is not
  // greater than the one before, or samples is 0 or makes the total overflow; nothing has changed
  // then. Not idempotent. NaN and infinity are applied: callers check with AllFinite before.
  absl::StatusOr<uint64_t> Apply(std::span<const uint64_t> keys,
                                 std::span<const float> gradient_sum, uint64_t samples,
                                 double rate_factor = 1);

  // The rows of these keys, in their order; keys may repeat. Makes no row. Precondition: `values`
  // has `width` elements for each key.
  void Read(std::span<const uint64_t> keys, std::span<float> values) const;

  // Calls visit(SparseRow) for each row, ascending by MixBits(key). It must not change the shard.
  template <typename Visit>
  void ForEachRow(const Visit& visit) const {
    index_.ForEach([&](const IndexEntry& entry) { visit(RowAt(entry)); });
  }
  // The rows as they are now, to be read while updates go on. Costs a bit per row. Shares the
  // shard.
  std::unique_ptr<SparseCut> Cut();
  // Adds those rows of a piece whose keys lie in the shard's slots, and returns how many these are.
  // The piece may come from any shard of the same table. kValues: their optimizer's state is empty,
  // as that of new rows. INVALID_ARGUMENT: it is not of this layout. FAILED_PRECONDITION: it has a
  // row that is there. After an error the shard must not be used.
  enum class Restored { kValues, kState };
  absl::StatusOr<uint64_t> RestoreRows(const RowPiece& piece, Restored restored = Restored::kState);
  void RestoreCounts(uint64_t version, uint64_t samples);
  // False: there is no such row.
  bool Erase(uint64_t key);
  // The sum of DigestOf all rows: equal for equal rows, however they came into being. One pass over
  // all bytes.
  uint64_t Digest() const;
  // The same of a few thousand rows: of another part of them for each number, and for numbers in a
  // row of all parts.
  uint64_t PartDigest(uint64_t number) const;

  size_t rows() const { return index_.size(); }
  size_t width() const { return config_.width; }
  size_t slots() const { return slots_.size(); }
  size_t slot_width(size_t slot) const { return optimizer_->slot_width(slot); }
  uint64_t version() const { return version_; }  // updates applied
  uint64_t samples() const { return samples_; }  // in all updates applied
  size_t bytes() const;                          // allocated
  bool Holds(uint64_t key) const;                // whether the key lies in the shard's slots
  RowLayout layout() const { return optimizer_->layout(); }

 private:
  friend class SparseCut;
  struct Block;

  SparseShard(const SparseShardConfig& config, LearningRateSchedule schedule,
              std::unique_ptr<RowOptimizer> optimizer);

  uint64_t PlaceOf(uint64_t key) const;
  uint64_t KeyOf(uint64_t place) const;
  SparseRow RowAt(const IndexEntry& entry) const;
  absl::Status Check(std::span<const uint64_t> keys, std::span<const float> gradient_sum,
                     uint64_t samples) const;
  // The number that the next new row gets; no entry has it.
  uint32_t NextRow() const;
  // Takes that number into use, with memory for the row. Precondition: row == NextRow().
  void Occupy(uint32_t row);
  // The same, with the key's first values and an empty state of the optimizer.
  void BeginRow(uint64_t key, uint32_t row);
  absl::Status RestoreRow(const SparseRow& row, Restored restored);
  // Before the row of the entry changes.
  void SaveForCuts(const IndexEntry& entry);
  // The stages of an update. Finds where the keys' entries are, and has these fetched.
  void FindPlaces(Block& block) const;
  // Finds or makes the rows, and has them fetched. Returns how many it did not make.
  uint64_t FindRows(Block& block);
  void UpdateRows(const UpdateContext& context, const float* gradient_sum, const Block& block);

  // Constant after construction.
  const SparseShardConfig config_;
  const LearningRateSchedule schedule_;
  const std::unique_ptr<RowOptimizer> optimizer_;
  const uint64_t first_place_;  // mixed keys begin here
  const int shift_;             // so that those of the shard fill the 64 bits of a place

  // Owned by the actor's thread.
  RowIndex index_;
  RowSlab<float> values_;
  std::vector<RowSlab<float>> slots_;
  RowSlab<uint32_t> updates_;
  uint32_t rows_made_ = 0;  // numbers 1 .. rows_made_ are in use or free
  std::vector<uint32_t> free_rows_;
  std::vector<SparseCut*> cuts_;  // that are not dropped yet
  uint64_t version_ = 0;
  uint64_t samples_ = 0;
};

}  // namespace covey::server
