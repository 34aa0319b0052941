// SPDX-License-Identifier: Apache-2.0
#include "server/snapshot/load_plan.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/snapshot/shard_entries.h"

namespace covey::server {
namespace {

using Plan = std::vector<PlannedPiece>;

// Numbers the pieces.
Plan Numbered(Plan plan) {
  for (size_t i = 0; i < plan.size(); ++i) {
    plan[i].as.set_piece(i);
    plan[i].as.set_pieces(plan.size());
  }
  return plan;
}

// The range of the table in which the element lies; the last one for any element beyond the table.
auto RangeWith(const proto::Table& table, uint64_t element) {
  const auto& ranges = table.shards();
  // The first shard begins at element 0.
  return std::prev(std::upper_bound(
      ranges.begin(), ranges.end(), element,
      [](uint64_t first, const proto::Shard& range) { return first < range.first_element(); }));
}

// Adds what rebuilds a shard of the snapshot.
void AddRebuild(const proto::Table& table, const proto::Shard& shard, const ShardEntries& entries,
                Plan& plan) {
  const auto add = [&](const proto::SnapshotShard& entry) {
    for (int i = 0; i < entry.pieces_size(); ++i) {
      plan.push_back({.shard = &entry,
                      .piece = &entry.pieces(i),
                      .table = &table,
                      .rebuilt = &shard,
                      .number = i});
    }
  };
  add(*entries.content);
  for (const proto::SnapshotShard* log : entries.logs) add(*log);
}

bool IsTaken(const proto::SnapshotPiece& piece, LoadSource::Takes takes) {
  return piece.kind() != proto::ReplicaPiece::RECORD || takes == LoadSource::Takes::kEverything;
}

// Of the table's shard that has the wanted range.
absl::StatusOr<Plan> PlanShard(const proto::SnapshotManifest& manifest, const proto::Table& table,
                               const LoadSource& wanted) {
  const auto range = RangeWith(table, wanted.first);
  if (range->first_element() != wanted.first || range->element_count() != wanted.count) {
    return absl::NotFoundError(absl::StrCat("table '", wanted.table, "' of ", wanted.folder,
                                            " has no shard of the ", wanted.count,
                                            " elements from ", wanted.first, " on"));
  }
  const ShardEntries entries = EntriesOf(manifest, table.id(), range->index());
  Plan plan;
  if (!entries.logs.empty()) {
    AddRebuild(table, *range, entries, plan);
    return plan;
  }
  const proto::SnapshotShard* const shard = entries.content;
  for (const proto::SnapshotPiece& piece : shard->pieces()) {
    // Of a sparse shard also to end its rows, of which there may be none.
    if (!IsTaken(piece, wanted.takes) && !table.spec().has_sparse()) continue;
    PlannedPiece& planned = plan.emplace_back();
    planned.shard = shard;
    planned.piece = &piece;
    planned.bytes = piece.bytes();
    if (wanted.takes == LoadSource::Takes::kEverything) planned.as.set_index(shard->index());
    planned.as.set_version(shard->version());
    planned.as.set_samples(shard->samples());
    planned.as.set_kind(static_cast<proto::ReplicaPiece::Kind>(piece.kind()));
    planned.as.set_slot(piece.slot());
    planned.as.set_first(piece.first());
  }
  return Numbered(std::move(plan));
}

// Adds the part of the piece that lies in the wanted range. `begin`: the piece's first element in
// the table.
void AddOverlap(const proto::SnapshotShard& shard, const proto::SnapshotPiece& piece,
                uint64_t begin, const LoadSource& wanted, Plan& plan) {
  const uint64_t first = std::max(begin, wanted.first);
  const uint64_t end = std::min(begin + piece.bytes() / sizeof(float), wanted.first + wanted.count);
  if (first >= end) return;
  PlannedPiece& planned = plan.emplace_back();
  planned.shard = &shard;
  planned.piece = &piece;
  planned.skip_bytes = (first - begin) * sizeof(float);
  planned.bytes = (end - first) * sizeof(float);
  planned.as.set_kind(proto::ReplicaPiece::VALUES);
  planned.as.set_first(first - wanted.first);
}

// Adds a piece of rows; the shard takes those that it holds.
void AddRows(const proto::SnapshotShard& shard, const proto::SnapshotPiece& piece, Plan& plan) {
  PlannedPiece& planned = plan.emplace_back();
  planned.shard = &shard;
  planned.piece = &piece;
  planned.bytes = piece.bytes();
  planned.as.set_kind(proto::ReplicaPiece::ROWS);
}

// Adds a piece that ends the rows, of which there may be none.
void AddEnd(const proto::SnapshotShard& shard, Plan& plan) {
  AddRows(shard, *shard.pieces().rbegin(), plan);
  plan.back().as.set_kind(proto::ReplicaPiece::RECORD);
}

// The values of the wanted range.
absl::StatusOr<Plan> PlanValues(const proto::SnapshotManifest& manifest, const proto::Table& table,
                                const LoadSource& wanted) {
  const uint64_t wanted_end = wanted.first + wanted.count;
  const proto::Shard& last = *table.shards().rbegin();
  if (const uint64_t end = last.first_element() + last.element_count(); end < wanted_end) {
    return absl::OutOfRangeError(absl::StrCat("table '", wanted.table, "' of ", wanted.folder,
                                              " has only ", end - std::min(end, wanted.first),
                                              " of the ", wanted.count, " elements from ",
                                              wanted.first, " on"));
  }
  const bool is_sparse = table.spec().has_sparse();
  std::vector<std::pair<const proto::Shard*, ShardEntries>> shards;
  for (auto range = RangeWith(table, wanted.first);
       range != table.shards().end() && range->first_element() < wanted_end; ++range) {
    shards.emplace_back(&*range, EntriesOf(manifest, table.id(), range->index()));
  }
  const bool rebuilds = std::any_of(shards.begin(), shards.end(),
                                    [](const auto& shard) { return !shard.second.logs.empty(); });
  Plan plan;
  for (const auto& [range, entries] : shards) {
    if (rebuilds) {
      AddRebuild(table, *range, entries, plan);
      continue;
    }
    for (const proto::SnapshotPiece& piece : entries.content->pieces()) {
      if (is_sparse && piece.kind() == proto::ReplicaPiece::ROWS) {
        AddRows(*entries.content, piece, plan);
        continue;
      }
      if (piece.kind() != proto::ReplicaPiece::VALUES) continue;
      AddOverlap(*entries.content, piece, range->first_element() + piece.first(), wanted, plan);
    }
  }
  if (is_sparse) AddEnd(*shards.back().second.content, plan);
  return rebuilds ? plan : Numbered(std::move(plan));
}

}  // namespace

absl::StatusOr<Plan> PlanLoad(const proto::SnapshotManifest& manifest, const LoadSource& source) {
  const auto& tables = manifest.state().view().tables();
  const auto table = std::find_if(tables.begin(), tables.end(), [&](const proto::Table& one) {
    return one.spec().name() == source.table;
  });
  if (table == tables.end()) {
    return absl::NotFoundError(absl::StrCat(source.folder, " has no table '", source.table, "'"));
  }
  return source.takes == LoadSource::Takes::kValues ? PlanValues(manifest, *table, source)
                                                    : PlanShard(manifest, *table, source);
}

}  // namespace covey::server
