// SPDX-License-Identifier: Apache-2.0

// Which rows of a shard are made, and which go.

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "common/base/check.h"
#include "common/base/planted_bug.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "server/sparse/sparse_shard.h"

namespace covey::server {
namespace {

// Keys that wait, for each row that the shard may hold.
constexpr uint64_t kPendingPerRow = 4;

}  // namespace

uint64_t SparseShard::pending_max() const {
  return std::min(config_.rows_max, kRowsPerShardMax / kPendingPerRow) * kPendingPerRow;
}

SparseShard::NewKey SparseShard::Judge(uint64_t place, const IndexEntry* waiting,
                                       uint64_t version) const {
  if (!config_.admission.Counts(MixedAt(place), version)) return NewKey::kIgnored;
  const uint32_t before = waiting == nullptr ? 0 : *pending_updates_.Row(NumberOf(*waiting));
  return before + 1 < config_.admission.after ? NewKey::kWaits : NewKey::kAdmitted;
}

IndexEntry* SparseShard::FindOrAdmit(uint64_t place, uint32_t new_row) {
  IndexEntry* const found = index_.Find(place);
  if (found != nullptr && !IsPending(*found)) return found;
  switch (Judge(place, found, version_ + 1)) {
    case NewKey::kIgnored:
      return nullptr;
    case NewKey::kWaits:
      Wait(place, found);
      return nullptr;
    case NewKey::kAdmitted:
      break;
  }
  if (rows() >= config_.rows_max) {
    ++totals_.refused;
    return nullptr;
  }
  if (found == nullptr) return &index_.FindOrInsert(place, new_row);
  SaveForCuts(*found);
  pending_.GiveBack(NumberOf(*found));
  found->row = new_row;
  return found;
}

void SparseShard::Wait(uint64_t place, IndexEntry* waiting) {
  if (waiting == nullptr) {
    if (pending() >= pending_max()) return;
    const uint32_t number = pending_.Next();
    OccupyPending(number);
    waiting = &index_.FindOrInsert(place, kPendingBit | number);
    *pending_updates_.Row(number) = 0;
  } else {
    SaveForCuts(*waiting);
  }
  ++*pending_updates_.Row(NumberOf(*waiting));
  waiting->stamp = static_cast<uint32_t>(version_ + 1);
}

void SparseShard::Remove(const IndexEntry& entry) {
  SaveForCuts(entry);
  if (!IsPending(entry)) removed_.Add(MixedAt(entry.place), version_ + 1, entries());
  (IsPending(entry) ? pending_ : numbers_).GiveBack(NumberOf(entry));
  index_.Erase(entry.place);
  ++removals_;
}

bool SparseShard::Erase(uint64_t key) {
  const IndexEntry* const entry = Holds(key) ? index_.Find(PlaceOf(key)) : nullptr;
  if (entry == nullptr) return false;
  Remove(*entry);
  return true;
}

void SparseShard::Evict(const Eviction& eviction, std::span<const uint64_t> spared) {
  std::vector<uint64_t> places;
  VisitEntries(eviction, [&](const IndexEntry& entry, uint64_t mixed) {
    if (eviction.Takes(ScoreOf(entry, eviction.by), mixed) &&
        !std::binary_search(spared.begin(), spared.end(), UnmixBits(mixed))) {
      places.push_back(entry.place);
    }
  });
  for (const uint64_t place : places) Remove(*index_.Find(place));
  if (eviction.of == Eviction::Of::kRows) totals_.evicted += places.size();
}

uint32_t SparseShard::ScoreOf(const IndexEntry& entry, EvictBy by) const {
  if (by == EvictBy::kCount) return RowAt(entry).updates;
  if (by == EvictBy::kNorm && !IsPending(entry)) {
    return std::bit_cast<uint32_t>(static_cast<float>(values_.SumOfSquares(entry.row)));
  }
  // The difference is right across the end of the stamps' 32 bits.
  return std::numeric_limits<uint32_t>::max() - (static_cast<uint32_t>(version_) - entry.stamp);
}

SparseShard::Forecast SparseShard::Foresee(std::span<const uint64_t> keys) const {
  Forecast forecast;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (i + kAhead < keys.size()) index_.Prefetch(PlaceOf(keys[i + kAhead]));
    const uint64_t place = PlaceOf(keys[i]);
    const IndexEntry* const found = index_.Find(place);
    if (found != nullptr && !IsPending(*found)) {
      ++forecast.rows;
      continue;
    }
    const NewKey fate =
        config_.admission.takes_all() ? NewKey::kAdmitted : Judge(place, found, version_ + 1);
    forecast.new_rows += fate == NewKey::kAdmitted;
    forecast.pending += found != nullptr;
    forecast.new_pending += found == nullptr && fate == NewKey::kWaits;
  }
  return forecast;
}

uint64_t SparseShard::RowBytesFor(const Forecast& forecast) const {
  const uint64_t rows_after = rows() + forecast.new_rows;
  if (config_.evicts && rows_after > config_.rows_max - config_.rows_max / 20) return 0;
  const uint64_t made = std::min(rows_after, config_.rows_max);
  return (made - std::min<uint64_t>(made, numbers_.made())) * layout_.row_bytes();
}

std::pair<uint64_t, uint64_t> SparseShard::PartOf(uint64_t part, uint64_t parts) const {
  const auto offset = [&](uint64_t number) {
    const auto places = static_cast<unsigned __int128>(config_.slot_count) << 48;
    return static_cast<uint64_t>(places * number / parts);
  };
  return {first_place_ + offset(part), first_place_ + (offset(part + 1) - 1)};
}

absl::StatusOr<uint64_t> SparseShard::RestorePending(const RowPiece& piece) {
  COVEY_ASSIGN_OR_RETURN(const RowPieceReader reader, RowPieceReader::Open(piece, kPendingLayout));
  if (config_.admission.takes_all() || Planted(PlantedBug::kAdmissionForgets)) return 0;
  uint64_t taken = 0;
  for (size_t i = 0; i < piece.rows; ++i) {
    const SparseRow row = reader.Row(i);
    if (!Holds(row.key)) continue;
    const uint32_t number = pending_.Next();
    COVEY_ASSIGN_OR_RETURN(IndexEntry* const entry, RestoreEntry(row.key, kPendingBit | number));
    OccupyPending(number);
    *pending_updates_.Row(number) = row.updates;
    entry->stamp = row.stamp;
    ++taken;
  }
  return taken;
}

}  // namespace covey::server
