// SPDX-License-Identifier: Apache-2.0
#include "server/snapshot/shard_loader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/net/frame_checksum.h"
#include "common/snapshot/manifest.h"
#include "common/snapshot/stored_piece.h"

namespace covey::server {
namespace {

constexpr size_t kPiecesInFlight = 2;
constexpr int kManifest = -1;

}  // namespace

void ShardLoader::Want(ShardId shard, const std::string& folder, NodeId self, Outbox& outbox) {
  self_ = self;
  wanted_.push_back({shard, folder});
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
    if (!manifest_ || manifest_->folder() != first.folder) {
      if (!requested_.empty()) return;
      requested_.emplace(next_request_, kManifest);
      return Request(absl::StrCat(first.folder, "/", kManifestName), {}, outbox);
    }
    if (entry_ == nullptr) {
      const auto found = std::find_if(manifest_->shards().begin(), manifest_->shards().end(),
                                      [&](const auto& entry) {
                                        return TableId(entry.table()) == first.shard.table &&
                                               ShardIndex(entry.shard()) == first.shard.index;
                                      });
      if (found == manifest_->shards().end()) {
        Fail(absl::NotFoundError(absl::StrCat(first.folder, " has no such shard")));
        continue;
      }
      entry_ = &*found;
    }
    if (next_to_request_ == entry_->pieces_size()) return;
    const StoredRange range = RangeOf(entry_->pieces(next_to_request_));
    proto::StoreRead read;
    read.set_offset(range.offset);
    read.set_bytes(range.bytes);
    requested_.emplace(next_request_, next_to_request_++);
    Request(absl::StrCat(first.folder, "/", entry_->file()), read, outbox);
  }
}

bool ShardLoader::OnStoreReply(const Message& reply, Outbox& outbox) {
  const auto request = requested_.find(reply.envelope.store_reply().id());
  if (request == requested_.end()) return false;
  const int piece = request->second;
  requested_.erase(request);
  if (piece == kManifest) {
    OnManifest(reply);
  } else if (piece == next_to_arrive_) {
    absl::StatusOr<Message> message = MakePiece(reply);
    if (message.ok()) {
      arrived_.push_back({wanted_.front().shard, *std::move(message)});
      if (++next_to_arrive_ == entry_->pieces_size()) Finish();
    } else {
      Fail(message.status());
    }
  }
  SendMore(outbox);
  return true;
}

void ShardLoader::OnManifest(const Message& reply) {
  absl::Status status = StatusOf(reply);
  if (status.ok() && reply.frames.size() == 1) {
    absl::StatusOr<proto::SnapshotManifest> manifest = DecodeManifest(reply.frames[0].bytes());
    status = manifest.status();
    if (manifest.ok()) manifest_ = *std::move(manifest);
  }
  if (!status.ok()) Fail(status);
}

absl::StatusOr<Message> ShardLoader::MakePiece(const Message& reply) const {
  if (const absl::Status status = StatusOf(reply); !status.ok()) return status;
  const proto::SnapshotPiece& entry = entry_->pieces(next_to_arrive_);
  const absl::StatusOr<Buffer> payload =
      PayloadOf(*entry_, entry, reply.frames.empty() ? Buffer() : reply.frames[0]);
  if (!payload.ok()) {
    return absl::DataLossError(
        absl::StrCat(wanted_.front().folder, "/", entry_->file(), " is damaged between byte ",
                     entry.offset(), " and ", entry.offset() + entry.bytes(), ": ",
                     payload.status().message(), "; continue an older snapshot"));
  }
  Message message;
  proto::ReplicaPiece& piece = *message.envelope.mutable_replica_piece();
  piece.set_index(entry_->index());
  piece.set_version(entry_->version());
  piece.set_samples(entry_->samples());
  piece.set_piece(static_cast<uint64_t>(next_to_arrive_));
  piece.set_pieces(static_cast<uint64_t>(entry_->pieces_size()));
  piece.set_kind(static_cast<proto::ReplicaPiece::Kind>(entry.kind()));
  piece.set_slot(entry.slot());
  piece.set_first(entry.first());
  AddFrame(message, *payload, entry.checksum());
  return message;
}

void ShardLoader::Finish() {
  wanted_.pop_front();
  entry_ = nullptr;
  next_to_request_ = next_to_arrive_ = 0;
  requested_.clear();
  if (wanted_.empty()) manifest_.reset();
}

void ShardLoader::Fail(const absl::Status& why) {
  arrived_.push_back({wanted_.front().shard, why});
  Finish();
}

}  // namespace covey::server
