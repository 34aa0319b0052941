// SPDX-License-Identifier: Apache-2.0
#include "server/replay/stored_content.h"

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/annotate.h"
#include "common/base/buffer.h"
#include "common/base/status_macros.h"
#include "common/runtime/actor.h"
#include "common/store/store_requests.h"
#include "common/tensor/codec.h"
#include "server/replication/content_pieces.h"
#include "server/replication/table_rules.h"
#include "server/snapshot/shard_loader.h"
#include "server/snapshot/shard_rebuild.h"
#include "server/sparse/row_piece.h"
#include "server/sparse/sparse_shard.h"

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

absl::Status ReadStoredRows(const SnapshotReader& snapshot, const proto::Table& table,
                            const proto::Shard& shard, const ShardEntries& entries, TakeRows take) {
  // This version writes none of rows.
  if (!entries.logs.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("shard ", shard.index(), " of table '", table.spec().name(),
                     "' has logs of updates of rows, which a later version has written; use that"));
  }
  COVEY_ASSIGN_OR_RETURN(const TableRules rules, RulesOf(table, shard));
  COVEY_ASSIGN_OR_RETURN(const std::shared_ptr<SparseShard> empty,
                         SparseShard::Create(std::get<SparseShardConfig>(rules.shard)));
  const RowLayout layout = empty->layout();
  std::vector<uint64_t> keys;
  std::vector<float> values;
  for (const proto::SnapshotPiece& stored : entries.content->pieces()) {
    if (stored.kind() != proto::ReplicaPiece::ROWS) continue;
    COVEY_ASSIGN_OR_RETURN(const Buffer payload, snapshot.ReadPiece(*entries.content, stored));
    const RowPiece piece{.rows = payload.size() / layout.row_bytes(), .frame = payload};
    COVEY_ASSIGN_OR_RETURN(const RowPieceReader rows, RowPieceReader::Open(piece, layout));
    keys.clear();
    values.clear();
    for (size_t i = 0; i < piece.rows; ++i) {
      const SparseRow row = rows.Row(i);
      keys.push_back(row.key);
      values.resize(values.size() + layout.width);
      Decode(layout.type, {row.values, layout.value_bytes()}, std::span(values).last(layout.width));
    }
    COVEY_RETURN_IF_ERROR(take(keys, values));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ShardContent>> LoadContent(Folder& store, const LoadSource& source,
                                                          std::unique_ptr<ShardContent> content) {
  const ShardId any;
  ContentImport import(std::move(content), source.takes);
  ShardLoader loader;
  Outbox outbox;
  loader.Want(any, source, NodeId(), outbox);
  for (std::vector<Message> requests = outbox.TakeMessages(); !requests.empty();
       requests = outbox.TakeMessages()) {
    for (const Message& request : requests) {
      loader.OnStoreReply(AnswerStoreRequest(request, store), outbox);
    }
    for (const ShardLoader::Piece& piece : loader.TakePieces()) {
      if (!piece.message.ok()) return piece.message.status();
      COVEY_ASSIGN_OR_RETURN(const bool is_complete, import.Add(absl::UnixEpoch(), *piece.message));
      if (is_complete) return import.Take();
    }
  }
  return absl::DataLossError(absl::StrCat(source.folder, " does not hold all of the shard"));
}

}  // namespace covey::server
