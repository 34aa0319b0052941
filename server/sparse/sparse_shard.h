// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/cluster/limits.h"
#include "common/optimizer/learning_rate.h"
#include "common/optimizer/row_optimizer.h"
#include "common/table/row_life_cycle.h"
#include "common/tensor/wire_format.h"
#include "server/sparse/admission.h"
#include "server/sparse/eviction.h"
#include "server/sparse/removed_keys.h"
#include "server/sparse/row_index.h"
#include "server/sparse/row_numbers.h"
#include "server/sparse/row_piece.h"
#include "server/sparse/row_places.h"
#include "server/sparse/row_scan.h"
#include "server/sparse/row_slab.h"
#include "server/sparse/row_values.h"
#include "server/table/initializer.h"
#include "server/table/row_memory.h"

namespace covey::server {

class SparseCut;

// The slots of a sparse table that a shard holds, and what a row of it is.
struct SparseShardConfig {
  uint64_t first_slot = 0;                 // key_slots.h
  uint64_t slot_count = 0;                 // at least 1
  size_t width = 0;                        // elements of a row
  WireFormat type = WireFormat::kFloat32;  // of the values; without blocks
  uint64_t rows_max = kRowsPerShardMax;
  // Whether rows go to make room for new ones, and which go first; for callers of Apply.
  bool evicts = false;
  EvictBy evict_by = EvictBy::kAge;
  Admission admission = {};
  InitializerConfig initializer = {};
  OptimizerConfig optimizer = {};
  LearningRateConfig learning_rate = {};
};

// Rows of a sparse table: those whose keys lie in a range of slots, with the state of their
// optimizer, and the counts of updates and samples. Its owner decides which pushes are admitted.
// Updates compute in float32, and so is the optimizer's state; row_values.h says how values of
// another type are rounded.
//
// A row comes into being with the first update that holds its key. Before that, and so in every
// read, it has its first values, which are a function of the initializer's seed, the key and the
// column alone: element c of key k is element k * width + c (modulo 2^64) of a dense table. So a
// sparse table of float32 whose keys are 0, 1, 2, … begins with the bits of a dense one.
//
// Where the config admits keys only after some updates, keys wait in the index, without a row and
// as many as four times rows_max at most; further ones do not count. A row that was evicted, or a
// key that waited, leaves nothing: the key begins as a new one.
//
// Actor-confined. Deterministic: the rows depend on the config and on the sequence of Apply calls
// only. Memory: the width, 4 bytes or 2 for each element, the optimizer's slots, 4 bytes for each,
// and about 40 bytes more per row; about 40 bytes per key that waits. Memory of rows that went is
// used again, and not returned.
class SparseShard : public std::enable_shared_from_this<SparseShard> {
 public:
  // Values and the state of optimizers are in `memory`, which outlives it; the index, and what is
  // four bytes per row, in that of the process. INVALID_ARGUMENT: a part of the config is not
  // valid, or not possible for rows.
  static absl::StatusOr<std::shared_ptr<SparseShard>> Create(
      const SparseShardConfig& config, RowMemory& memory = ProcessRowMemory());
  // A new one of the same config, in the same memory.
  std::shared_ptr<SparseShard> Empty() const;
  SparseShard(const SparseShard&) = delete;

  // INVALID_ARGUMENT: a key lies outside the slots; names it, and the remedy.
  absl::Status CheckHolds(std::span<const uint64_t> keys) const;
  // One update by the mean of a gradient over `samples` training examples, given as their sum: a
  // row of `width` elements for each key. The learning rate is that of the total of samples, these
  // included. An update may hold no key. The evictions come first, in their order, and spare the
  // keys of the update. Returns how many rows it did not make because the shard holds rows_max; the
  // gradients of these are lost, as are those of keys that are not admitted yet.
  //
  // `places`, if not null, are those of these keys, from earlier calls; the next one is spared the
  // lookups and the checks of keys.
  //
  // INVALID_ARGUMENT: the gradient has another length, a key lies outside the slots or is not
  // greater than the one before, or samples is 0 or makes the total overflow; nothing has changed
  // then. Not idempotent. NaN and infinity are applied: callers check with AllFinite before.
  absl::StatusOr<uint64_t> Apply(std::span<const uint64_t> keys,
                                 std::span<const float> gradient_sum, uint64_t samples,
                                 double rate_factor = 1, std::span<const Eviction> evictions = {},
                                 RowPlaces* places = nullptr);

  // The values of the rows of these keys, encoded, in their order; keys may repeat. Makes no row.
  // `places` as Apply, of keys that Apply would take. Precondition: `rows` has
  // layout().value_bytes() for each key.
  void Read(std::span<const uint64_t> keys, std::span<uint8_t> rows,
            RowPlaces* places = nullptr) const;

  // INVALID_ARGUMENT: the scan begins outside the slots. OUT_OF_RANGE: all rows have to be read,
  // because which rows went after `since` is not known (the shard was filled later, or more went
  // than it remembers), or because the shard has never been at that version.
  absl::Status CheckScan(const RowScan& scan) const;
  // The next piece. A reader that has taken pieces up to the shard's last slot, and then all pieces
  // of what changed since the version of the first of them, holds each range as it is in its last
  // piece. Precondition: CheckScan.
  ScannedRows Scan(const RowScan& scan) const;

  // Calls visit(SparseRow) for each row, ascending by MixBits(key). It must not change the shard.
  template <typename Visit>
  void ForEachRow(const Visit& visit) const {
    index_.ForEach([&](const IndexEntry& entry) {
      if (!IsPending(entry)) visit(RowAt(entry));
    });
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
  // The same of keys that waited for admission (SparseCut::NextPending). A shard that takes all
  // keys at once needs none.
  absl::StatusOr<uint64_t> RestorePending(const RowPiece& piece);
  void RestoreCounts(uint64_t version, uint64_t samples);
  // Rows that went, and rows that were not made because the shard was full, since its beginning.
  struct Totals {
    uint64_t evicted = 0;
    uint64_t refused = 0;
    friend bool operator==(const Totals&, const Totals&) = default;
  };
  const Totals& totals() const { return totals_; }
  void RestoreTotals(const Totals& totals) { totals_ = totals; }
  // False: the key has no row, and does not wait for one.
  bool Erase(uint64_t key);

  // What the next update does with these keys, were there room for all.
  struct Forecast {
    uint64_t rows = 0;  // that it updates, and that it makes
    uint64_t new_rows = 0;
    uint64_t pending = 0;  // keys that go on waiting, and that begin to
    uint64_t new_pending = 0;
  };
  Forecast Foresee(std::span<const uint64_t> keys) const;
  // What evictions order rows by, before the next update.
  uint32_t ScoreOf(const IndexEntry& entry, EvictBy by) const;
  // Calls visit(entry, MixBits(key)) for the entries that the eviction is about, whatever its
  // bound, ascending by MixBits(key). It must not change the shard.
  template <typename Visit>
  void VisitEntries(const Eviction& eviction, const Visit& visit) const {
    if (eviction.last < first_place_ || eviction.first > last_mixed()) return;
    const uint64_t first = std::max(eviction.first, first_place_);
    index_.VisitFrom((first - first_place_) << shift_, [&](const IndexEntry& entry) {
      const uint64_t mixed = MixedAt(entry.place);
      if (mixed > eviction.last) return false;
      if (IsPending(entry) == (eviction.of == Eviction::Of::kPending)) visit(entry, mixed);
      return true;
    });
  }
  // One of `parts` ranges of MixBits(key), of about equal size, into which the shard's keys fall:
  // the first and the last of it. Precondition: part < parts.
  std::pair<uint64_t, uint64_t> PartOf(uint64_t part, uint64_t parts) const;
  // The sum of DigestOf all rows: equal for equal rows, however they came into being. One pass over
  // all bytes.
  uint64_t Digest() const;
  // The same of a few thousand rows: of another part of them for each number, and for numbers in a
  // row of all parts.
  uint64_t PartDigest(uint64_t number) const;

  size_t rows() const { return index_.size() - pending(); }
  size_t pending() const { return pending_.in_use(); }  // keys that wait for admission
  uint64_t pending_max() const;
  size_t entries() const { return index_.size(); }  // rows() + pending()
  const SparseShardConfig& config() const { return config_; }
  size_t width() const { return config_.width; }
  size_t slots() const { return slots_.size(); }
  size_t slot_width(size_t slot) const { return optimizer_->slot_width(slot); }
  uint64_t version() const { return version_; }  // updates applied
  uint64_t samples() const { return samples_; }  // in all updates applied
  size_t bytes() const;                          // allocated
  // Of the rows: of those that are there, and of those that went and whose memory is used again.
  uint64_t row_bytes() const { return uint64_t{numbers_.made()} * layout_.row_bytes(); }
  // What the rows of the next update take beyond row_bytes(), by its forecast. 0 where others go to
  // make room for them.
  uint64_t RowBytesFor(const Forecast& forecast) const;
  bool Holds(uint64_t key) const;  // whether the key lies in the shard's slots
  RowLayout layout() const { return layout_; }

 private:
  friend class SparseCut;
  struct Block;
  // How many keys ahead of its lookup an index entry is fetched.
  static constexpr size_t kAhead = 24;

  SparseShard(const SparseShardConfig& config, LearningRateSchedule schedule,
              std::unique_ptr<RowOptimizer> optimizer, RowMemory& memory);

  uint64_t PlaceOf(uint64_t key) const;
  uint64_t KeyOf(uint64_t place) const;
  uint64_t MixedAt(uint64_t place) const { return (place >> shift_) + first_place_; }
  // The greatest mixed key of the shard.
  uint64_t last_mixed() const { return first_place_ + ((config_.slot_count << 48) - 1); }
  SparseRow RowAt(const IndexEntry& entry) const;
  absl::Status CheckUpdate(size_t keys, size_t gradient_elements, uint64_t samples) const;
  absl::Status CheckKeys(std::span<const uint64_t> keys) const;
  // Takes the next number into use, with memory for the row.
  void Occupy(uint32_t row);
  // The same for a key that waits.
  void OccupyPending(uint32_t number);
  // As Occupy, with the key's first values and an empty state of the optimizer.
  void BeginRow(uint64_t key, uint32_t row);
  // What the update that makes this version does with a key without a row.
  enum class NewKey { kIgnored, kWaits, kAdmitted };
  NewKey Judge(uint64_t place, const IndexEntry* waiting, uint64_t version) const;
  // The entry of the key's row, which is made, as `new_row`, where there is none and the key is
  // admitted. Null: there is no row.
  IndexEntry* FindOrAdmit(uint64_t place, uint32_t new_row);
  // Counts an update for a key that waits. `waiting`: null = it begins to.
  void Wait(uint64_t place, IndexEntry* waiting);
  // Removes the entry and gives its number back.
  void Remove(const IndexEntry& entry);
  void Evict(const Eviction& eviction, std::span<const uint64_t> spared);
  // The new entry of a key, which gets this number. FAILED_PRECONDITION: the key has one.
  absl::StatusOr<IndexEntry*> RestoreEntry(uint64_t key, uint32_t number);
  absl::Status RestoreRow(const SparseRow& row, Restored restored);
  uint64_t DigestOfEntry(const IndexEntry& entry, const RowLayout& rows) const;
  // Before the row of the entry changes.
  void SaveForCuts(const IndexEntry& entry);
  // False: they are of another shard, or null.
  bool IsOfThis(const RowPlaces* places) const;
  // Forgets what is no longer right. Precondition (checked): they are of so many keys, or new.
  void Refresh(size_t keys, RowPlaces& places) const;
  // The entry of the list's key of that number, which has a row.
  void Note(const IndexEntry& entry, size_t key, RowPlaces& places) const;
  // The entry of a row that has not gone since the key's was found at `was` (null: unknown).
  IndexEntry* FindAgain(uint64_t key, uint32_t row, const IndexEntry* was);
  // The entry of the key's row, or null: there is none, and the shard makes none.
  IndexEntry* FindOrMake(uint64_t key, uint32_t new_row);
  // The stages of an update. Has the keys' entries fetched.
  void FetchEntries(const Block& block, const RowPlaces* places) const;
  // Finds or makes the rows, and has them fetched.
  void FindRows(Block& block, RowPlaces* places);
  void UpdateRows(const UpdateContext& context, const float* gradient_sum, const Block& block);

  // Constant after construction.
  const SparseShardConfig config_;
  RowMemory& memory_;
  const LearningRateSchedule schedule_;
  const std::unique_ptr<RowOptimizer> optimizer_;
  const RowLayout layout_;
  const uint64_t first_place_;  // mixed keys begin here
  const int shift_;             // so that those of the shard fill the 64 bits of a place

  // Owned by the actor's thread.
  RowIndex index_;
  RowValues values_;
  std::vector<RowSlab<float>> slots_;
  RowSlab<uint32_t> updates_;
  RowNumbers numbers_;  // of rows
  // Of keys that wait for admission: numbers, and the updates that have held them.
  RowNumbers pending_;
  RowSlab<uint32_t> pending_updates_;
  Totals totals_;
  uint64_t removals_ = 0;  // of rows and of keys that waited
  RemovedKeys removed_;
  std::vector<SparseCut*> cuts_;  // that are not dropped yet
  uint64_t version_ = 0;
  uint64_t samples_ = 0;
};

}  // namespace covey::server
