// SPDX-License-Identifier: Apache-2.0
#include "server/snapshot/shard_loader.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/net/frame_checksum.h"
#include "common/snapshot/manifest.h"
#include "common/snapshot/shard_entries.h"
#include "common/snapshot/stored_piece.h"

namespace covey::server {
namespace {

constexpr size_t kPiecesInFlight = 2;
constexpr size_t kManifest = std::numeric_limits<size_t>::max();

// Adds the pieces of a rebuilt content that the source takes, without their numbers. `begin`: the
// content's first element in the table.
void AddRebuilt(ContentCut content, uint64_t begin, const LoadSource& source,
                std::vector<Message>& pieces) {
  const bool is_whole = source.takes != LoadSource::Takes::kValues;
  if (!is_whole) {
    const uint64_t end = begin + content.values.size() / sizeof(float);
    const uint64_t first = std::max(begin, source.first);
    const uint64_t count = std::min(end, source.first + source.count) - first;
    content = ContentCut{
        .values = content.values.Slice((first - begin) * sizeof(float), count * sizeof(float))};
    begin = first;
  }
  ContentExport all(std::move(content));
  for (uint64_t i = 0; i < all.pieces(); ++i) {
    Message message = all.Piece(i);
    proto::ReplicaPiece& piece = *message.envelope.mutable_replica_piece();
    if (source.takes != LoadSource::Takes::kEverything) {
      if (piece.kind() == proto::ReplicaPiece::RECORD) continue;
      piece.clear_index();
    }
    if (!is_whole) piece.set_first(piece.first() + begin - source.first);
    pieces.push_back(std::move(message));
  }
}

}  // namespace

void ShardLoader::Want(ShardId shard, LoadSource source, NodeId self, Outbox& outbox) {
  self_ = self;
  wanted_.push_back({shard, std::move(source)});
  SendMore(outbox);
}

void ShardLoader::Request(const std::string& path, const proto::StoreRead& read, Outbox& outbox) {
  Message message;
  message.set_to({self_, kStoreLoop});
  proto::StoreRequest& request = *message.envelope.mutable_store_request();
  request.set_id(next_request_++);
  request.set_path(path);
  *request.mutable_read() = read;
  outbox.Send(std::move(message));
}

void ShardLoader::SendMore(Outbox& outbox) {
  while (!wanted_.empty() && requested_.size() < kPiecesInFlight) {
    const Wanted& first = wanted_.front();
    const std::string& folder = first.source.folder;
    if (!manifest_ || manifest_->folder() != folder) {
      if (!requested_.empty()) return;
      requested_.emplace(next_request_, kManifest);
      return Request(ManifestPath(folder), {}, outbox);
    }
    if (plan_.empty()) {
      absl::StatusOr<std::vector<PlannedPiece>> plan = PlanLoad(*manifest_, first.source);
      if (!plan.ok()) {
        Fail(plan.status());
        continue;
      }
      plan_ = *std::move(plan);
    }
    if (next_to_request_ == plan_.size()) return;
    const PlannedPiece& next = plan_[next_to_request_];
    const StoredRange range = RangeOf(*next.piece);
    proto::StoreRead read;
    read.set_offset(range.offset);
    read.set_bytes(range.bytes);
    requested_.emplace(next_request_, next_to_request_++);
    Request(PathOf(*manifest_, *next.shard), read, outbox);
  }
}

bool ShardLoader::OnStoreReply(const Message& reply, Outbox& outbox) {
  const auto request = requested_.find(reply.envelope.store_reply().id());
  if (request == requested_.end()) return false;
  const size_t piece = request->second;
  requested_.erase(request);
  if (piece == kManifest) {
    OnManifest(reply);
  } else if (piece == next_to_arrive_) {
    const absl::Status taken = TakePiece(reply);
    if (taken.ok()) {
      failures_ = 0;
      if (++next_to_arrive_ == plan_.size()) Finish();
    } else if (TriesAgain(taken)) {
      requested_.clear();
      next_to_request_ = next_to_arrive_;
    } else {
      Fail(taken);
    }
  }
  SendMore(outbox);
  return true;
}

void ShardLoader::OnManifest(const Message& reply) {
  const Buffer bytes = reply.frames.empty() ? Buffer() : reply.frames[0];
  const absl::Status read = StatusOf(reply);
  absl::StatusOr<proto::SnapshotManifest> manifest =
      read.ok() ? DecodeManifestOf(wanted_.front().source.folder, bytes.bytes()) : read;
  if (manifest.ok()) {
    failures_ = 0;
    manifest_ = *std::move(manifest);
  } else if (!TriesAgain(manifest.status())) {
    Fail(manifest.status());
  }
}

bool ShardLoader::TriesAgain(const absl::Status& status) {
  return absl::IsUnavailable(status) && ++failures_ < kAttempts;
}

absl::Status ShardLoader::TakePiece(const Message& reply) {
  if (const absl::Status status = StatusOf(reply); !status.ok()) return status;
  const PlannedPiece& planned = plan_[next_to_arrive_];
  const proto::SnapshotPiece& entry = *planned.piece;
  const auto damage = [&](const absl::Status& why) {
    return absl::DataLossError(absl::StrCat(
        PathOf(*manifest_, *planned.shard), " is damaged between byte ", entry.offset(), " and ",
        entry.offset() + entry.bytes(), ": ", why.message(), "; take another snapshot"));
  };
  const absl::StatusOr<Buffer> payload =
      PayloadOf(*planned.shard, entry, reply.frames.empty() ? Buffer() : reply.frames[0]);
  if (!payload.ok()) return damage(payload.status());
  if (planned.rebuilt != nullptr) {
    const absl::Status added = AddToRebuild(planned, *payload);
    return absl::IsDataLoss(added) ? damage(added) : added;
  }
  Message message;
  *message.envelope.mutable_replica_piece() = planned.as;
  const Buffer frame = payload->Slice(planned.skip_bytes, planned.bytes);
  const bool whole = frame.size() == payload->size();
  AddFrame(message, frame, whole ? entry.checksum() : FrameChecksum(frame));
  arrived_.push_back({wanted_.front().shard, std::move(message)});
  return absl::OkStatus();
}

absl::Status ShardLoader::AddToRebuild(const PlannedPiece& planned, const Buffer& payload) {
  if (rebuild_ == nullptr) {
    COVEY_ASSIGN_OR_RETURN(rebuild_, ShardRebuild::Begin(*planned.table, *planned.rebuilt,
                                                         EntriesOf(*manifest_, planned.table->id(),
                                                                   planned.rebuilt->index())));
  }
  COVEY_RETURN_IF_ERROR(rebuild_->Add(*planned.shard, planned.number, payload));
  const size_t next = next_to_arrive_ + 1;
  const bool is_last = next == plan_.size() || plan_[next].rebuilt != planned.rebuilt;
  if (!is_last) return absl::OkStatus();
  COVEY_ASSIGN_OR_RETURN(ContentCut content, rebuild_->Finish());
  rebuild_.reset();
  const LoadSource& source = wanted_.front().source;
  AddRebuilt(std::move(content), planned.rebuilt->first_element(), source, rebuilt_);
  if (next < plan_.size()) return absl::OkStatus();
  const size_t pieces = rebuilt_.size();
  for (size_t i = 0; i < pieces; ++i) {
    proto::ReplicaPiece& piece = *rebuilt_[i].envelope.mutable_replica_piece();
    piece.set_piece(i);
    piece.set_pieces(pieces);
    arrived_.push_back({wanted_.front().shard, std::move(rebuilt_[i])});
  }
  rebuilt_.clear();
  return absl::OkStatus();
}

void ShardLoader::Finish() {
  wanted_.pop_front();
  plan_.clear();
  next_to_request_ = next_to_arrive_ = 0;
  failures_ = 0;
  rebuild_.reset();
  rebuilt_.clear();
  requested_.clear();
  if (wanted_.empty()) manifest_.reset();
}

void ShardLoader::Fail(const absl::Status& why) {
  arrived_.push_back({wanted_.front().shard, why});
  Finish();
}

}  // namespace covey::server
