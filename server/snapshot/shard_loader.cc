// SPDX-License-Identifier: Apache-2.0
#include "server/snapshot/shard_loader.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/net/frame_checksum.h"
#include "common/snapshot/manifest.h"
#include "common/snapshot/stored_piece.h"

namespace covey::server {
namespace {

constexpr size_t kPiecesInFlight = 2;
constexpr size_t kManifest = std::numeric_limits<size_t>::max();

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
    absl::StatusOr<Message> message = MakePiece(reply);
    if (message.ok()) {
      failures_ = 0;
      arrived_.push_back({wanted_.front().shard, *std::move(message)});
      if (++next_to_arrive_ == plan_.size()) Finish();
    } else if (TriesAgain(message.status())) {
      requested_.clear();
      next_to_request_ = next_to_arrive_;
    } else {
      Fail(message.status());
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

absl::StatusOr<Message> ShardLoader::MakePiece(const Message& reply) const {
  if (const absl::Status status = StatusOf(reply); !status.ok()) return status;
  const PlannedPiece& planned = plan_[next_to_arrive_];
  const proto::SnapshotPiece& entry = *planned.piece;
  const absl::StatusOr<Buffer> payload =
      PayloadOf(*planned.shard, entry, reply.frames.empty() ? Buffer() : reply.frames[0]);
  if (!payload.ok()) {
    return absl::DataLossError(absl::StrCat(PathOf(*manifest_, *planned.shard),
                                            " is damaged between byte ", entry.offset(), " and ",
                                            entry.offset() + entry.bytes(), ": ",
                                            payload.status().message(), "; take another snapshot"));
  }
  Message message;
  *message.envelope.mutable_replica_piece() = planned.as;
  const Buffer frame = payload->Slice(planned.skip_bytes, planned.bytes);
  const bool whole = frame.size() == payload->size();
  AddFrame(message, frame, whole ? entry.checksum() : FrameChecksum(frame));
  return message;
}

void ShardLoader::Finish() {
  wanted_.pop_front();
  plan_.clear();
  next_to_request_ = next_to_arrive_ = 0;
  failures_ = 0;
  requested_.clear();
  if (wanted_.empty()) manifest_.reset();
}

void ShardLoader::Fail(const absl::Status& why) {
  arrived_.push_back({wanted_.front().shard, why});
  Finish();
}

}  // namespace covey::server
