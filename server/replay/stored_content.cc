// SPDX-License-Identifier: Apache-2.0
#include "server/replay/stored_content.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/buffer.h"
#include "common/base/status_macros.h"
#include "server/snapshot/shard_rebuild.h"

namespace covey::server {
namespace {

absl::Status AddEntry(const SnapshotReader& snapshot, const proto::SnapshotShard& entry,
                      ShardRebuild& rebuild) {
  for (int i = 0; i < entry.pieces_size(); ++i) {
    COVEY_ASSIGN_OR_RETURN(const Buffer payload, snapshot.ReadPiece(entry, entry.pieces(i)));
    COVEY_RETURN_IF_ERROR(rebuild.Add(entry, i, payload));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ContentCut> ReadStoredContent(const SnapshotReader& snapshot,
                                             const proto::Table& table, const proto::Shard& shard,
                                             const ShardEntries& entries) {
  const std::string where =
      absl::StrCat("table '", table.spec().name(), "', shard ", shard.index());
  absl::StatusOr<std::unique_ptr<ShardRebuild>> rebuild =
      ShardRebuild::Begin(table, shard, entries);
  if (!rebuild.ok()) return Annotate(where, rebuild.status());
  COVEY_RETURN_IF_ERROR(Annotate(where, AddEntry(snapshot, *entries.content, **rebuild)));
  for (const proto::SnapshotShard* const log : entries.logs) {
    COVEY_RETURN_IF_ERROR(Annotate(where, AddEntry(snapshot, *log, **rebuild)));
  }
  absl::StatusOr<ContentCut> content = (*rebuild)->Finish();
  if (!content.ok()) return Annotate(where, content.status());
  return content;
}

}  // namespace covey::server
