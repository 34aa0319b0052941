// SPDX-License-Identifier: Apache-2.0
#include "server/snapshot/shard_rebuild.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/net/message.h"
#include "server/replication/table_rules.h"
#include "server/snapshot/update_batch.h"

namespace covey::server {
namespace {

// Time decides nothing in a shard's content.
constexpr absl::Time kAnyTime = absl::UnixEpoch();
constexpr size_t kSpareBytesMax = 16 << 20;

}  // namespace

absl::StatusOr<std::unique_ptr<ShardRebuild>> ShardRebuild::Begin(const proto::Table& table,
                                                                  const proto::Shard& shard,
                                                                  const ShardEntries& entries) {
  COVEY_ASSIGN_OR_RETURN(const TableRules rules, RulesOf(table, shard));
  auto spares = std::make_unique<BufferPool>(kSpareBytesMax);
  auto memory = std::make_unique<HostMemory>(*spares);
  COVEY_ASSIGN_OR_RETURN(std::unique_ptr<ShardContent> content,
                         ShardContent::Create(kAnyTime, rules.shard, *memory));
  return std::unique_ptr<ShardRebuild>(
      new ShardRebuild(entries, std::move(spares), std::move(memory), std::move(content)));
}

absl::Status ShardRebuild::Add(const proto::SnapshotShard& entry, int piece,
                               const Buffer& payload) {
  if (!IsLog(entry)) return AddContent(entry, piece, payload);
  COVEY_CHECK(content_ != nullptr);
  return ForEachUpdate(payload, content_->shape(),
                       [&](ShardRecord record) { return Apply(entry, std::move(record)); });
}

absl::Status ShardRebuild::AddContent(const proto::SnapshotShard& entry, int piece,
                                      const Buffer& payload) {
  const proto::SnapshotPiece& stored = entry.pieces(piece);
  Message message;
  proto::ReplicaPiece& part = *message.envelope.mutable_replica_piece();
  part.set_index(entry.index());
  part.set_version(entry.version());
  part.set_samples(entry.samples());
  part.set_piece(static_cast<uint64_t>(piece));
  part.set_pieces(static_cast<uint64_t>(entry.pieces_size()));
  part.set_kind(static_cast<proto::ReplicaPiece::Kind>(stored.kind()));
  part.set_slot(stored.slot());
  part.set_first(stored.first());
  message.frames.push_back(payload);
  const absl::StatusOr<bool> complete = import_->Add(kAnyTime, message);
  if (!complete.ok()) return absl::DataLossError(complete.status().message());
  if (!*complete) return absl::OkStatus();
  content_ = import_->Take();
  import_.reset();
  return absl::OkStatus();
}

absl::Status ShardRebuild::Apply(const proto::SnapshotShard& log, ShardRecord record) {
  // Between a content and its first log, and between two logs, may have been cuts, which are in
  // none.
  const bool follows =
      log_ == &log ? record.index == newest_ + 1 : record.index > content_->index();
  if (!follows || record.index > log.index()) {
    return absl::DataLossError(absl::StrCat("update ", record.index, " follows ", newest_,
                                            " in a log that ends with ", log.index()));
  }
  log_ = &log;
  newest_ = record.index;
  // Of the new history.
  record.index = content_->index() + 1;
  record.digest.reset();
  const absl::Status applied = [&]() -> absl::Status {
    COVEY_ASSIGN_OR_RETURN(const GradientBuffers gradient,
                           Decoded(record.gradient, content_->shape(), *spares_));
    return content_->Apply(kAnyTime, record, gradient.spans());
  }();
  return applied.ok() ? applied : absl::DataLossError(applied.message());
}

absl::StatusOr<ContentCut> ShardRebuild::Finish() const {
  const proto::SnapshotShard& newest = entries_.newest();
  if (content_ != nullptr && content_->version() == Version(newest.version()) &&
      content_->samples() == newest.samples()) {
    ContentCut content = content_->Cut();
    content.index = newest.index();
    return content;
  }
  return absl::DataLossError(
      content_ == nullptr
          ? std::string("the content is not complete")
          : absl::StrCat("the logs lead to version ", content_->version().value(), " after ",
                         content_->samples(), " examples, and the manifest says ", newest.version(),
                         " after ", newest.samples()));
}

}  // namespace covey::server
