// SPDX-License-Identifier: Apache-2.0
#include "server/snapshot/load_plan.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

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

// The manifest's shards grow by (table, shard). Past the end where there is no such shard.
auto EntryOf(const proto::SnapshotManifest& manifest, uint32_t table, uint32_t shard) {
  const auto& shards = manifest.shards();
  const std::pair wanted(table, shard);
  const auto at = std::lower_bound(shards.begin(), shards.end(), wanted,
                                   [](const proto::SnapshotShard& entry, const auto& id) {
                                     return std::pair(entry.table(), entry.shard()) < id;
                                   });
  return at != shards.end() && std::pair(at->table(), at->shard()) == wanted ? at : shards.end();
}

absl::StatusOr<Plan> WholeShard(const proto::SnapshotManifest& manifest, ShardId id,
                                const std::string& folder) {
  const auto entry = EntryOf(manifest, id.table.value(), id.index.value());
  if (entry == manifest.shards().end()) {
    return absl::NotFoundError(absl::StrCat(folder, " has no such shard"));
  }
  Plan plan;
  for (const proto::SnapshotPiece& piece : entry->pieces()) {
    PlannedPiece& planned = plan.emplace_back();
    planned.shard = &*entry;
    planned.piece = &piece;
    planned.bytes = piece.bytes();
    planned.as.set_index(entry->index());
    planned.as.set_version(entry->version());
    planned.as.set_samples(entry->samples());
    planned.as.set_kind(static_cast<proto::ReplicaPiece::Kind>(piece.kind()));
    planned.as.set_slot(piece.slot());
    planned.as.set_first(piece.first());
  }
  return Numbered(std::move(plan));
}

// Adds the part of the piece that lies in the wanted range. `begin`: the piece's first element in
// the table.
void AddOverlap(const proto::SnapshotShard& shard, const proto::SnapshotPiece& piece,
                uint64_t begin, const LoadSource::Values& wanted, Plan& plan) {
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

absl::StatusOr<Plan> Range(const proto::SnapshotManifest& manifest,
                           const LoadSource::Values& wanted, const std::string& folder) {
  const auto& tables = manifest.state().view().tables();
  const auto table = std::find_if(tables.begin(), tables.end(), [&](const proto::Table& one) {
    return one.spec().name() == wanted.table;
  });
  if (table == tables.end()) {
    return absl::NotFoundError(absl::StrCat(folder, " has no table '", wanted.table, "'"));
  }
  const auto& ranges = table->shards();
  // The first shard begins at element 0.
  auto range = std::prev(std::upper_bound(
      ranges.begin(), ranges.end(), wanted.first,
      [](uint64_t first, const proto::Shard& one) { return first < one.first_element(); }));
  auto shard = EntryOf(manifest, table->id(), range->index());
  Plan plan;
  for (; range != ranges.end() && range->first_element() < wanted.first + wanted.count;
       ++range, ++shard) {
    for (const proto::SnapshotPiece& piece : shard->pieces()) {
      if (piece.kind() != proto::ReplicaPiece::VALUES) continue;
      AddOverlap(*shard, piece, range->first_element() + piece.first(), wanted, plan);
    }
  }
  uint64_t bytes = 0;
  for (const PlannedPiece& planned : plan) bytes += planned.bytes;
  if (bytes == wanted.count * sizeof(float)) return Numbered(std::move(plan));
  return absl::OutOfRangeError(absl::StrCat("table '", wanted.table, "' of ", folder, " has only ",
                                            bytes / sizeof(float), " of the ", wanted.count,
                                            " elements from ", wanted.first, " on"));
}

}  // namespace

absl::StatusOr<Plan> PlanLoad(const proto::SnapshotManifest& manifest, ShardId shard,
                              const LoadSource& source) {
  return source.values ? Range(manifest, *source.values, source.folder)
                       : WholeShard(manifest, shard, source.folder);
}

}  // namespace covey::server
