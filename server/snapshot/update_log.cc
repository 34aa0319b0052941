// SPDX-License-Identifier: Apache-2.0
#include "server/snapshot/update_log.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/planted_bug.h"
#include "common/cluster/limits.h"

namespace covey::server {
namespace {

// A piece costs a header, an entry of the manifest, and a part of a request.
constexpr uint64_t kBatchBytes = 16 << 10;
// As for content: the disk always has something to write.
constexpr uint64_t kBytesInFlight = 2 * kReplicaPieceBytesMax;

}  // namespace

void UpdateLog::Begin(ShardId shard, uint64_t generation, uint64_t cut, uint64_t bytes_max) {
  Part& part = parts_[shard];
  Drop(part);
  part = {.generation = generation,
          .cut = cut,
          .newest = cut,
          .bytes_max = bytes_max,
          .is_logged = bytes_max > 0};
}

void UpdateLog::Drop(Part& part) {
  held_bytes_ -= part.batch.bytes();
  part.batch = {};
  part.pieces.clear();
  part.is_logged = false;
}

void UpdateLog::Add(ShardId shard, uint64_t generation, ShardRecord& record) {
  const auto found = parts_.find(shard);
  if (found == parts_.end()) return;
  Part& part = found->second;
  part.is_counted &= part.generation == generation && record.index == part.newest + 1;
  part.newest = record.index;
  const uint64_t bytes = UpdateBatch::BytesOf(record);
  part.bytes += bytes;
  if (!part.is_logged) return;
  if (!part.is_counted || part.bytes > part.bytes_max ||
      part.batch.bytes() + bytes > kFrameBytesMax || held_bytes_ + bytes > kHeldBytesMax) {
    return Drop(part);
  }
  held_bytes_ -= part.batch.bytes();
  if (!Planted(PlantedBug::kLogLacksUpdates) || record.index % 3 != 0) part.batch.Add(record);
  held_bytes_ += part.batch.bytes();
  if (part.batch.bytes() >= kBatchBytes) Queue(shard, part);
}

void UpdateLog::Stop(ShardId shard) {
  const auto found = parts_.find(shard);
  if (found != parts_.end()) Drop(found->second);
}

bool UpdateLog::IsLogged(ShardId shard) const {
  const auto found = parts_.find(shard);
  return found != parts_.end() && found->second.is_logged;
}

uint64_t UpdateLog::LoggedSince(ShardId shard, uint64_t generation, uint64_t index) const {
  const auto found = parts_.find(shard);
  if (found == parts_.end()) return 0;
  const Part& part = found->second;
  const bool has_all = part.is_logged && part.is_counted && part.generation == generation &&
                       part.newest == index && index > part.cut;
  return has_all ? part.cut : 0;
}

std::optional<uint64_t> UpdateLog::BytesOf(ShardId shard) const {
  const auto found = parts_.find(shard);
  if (found == parts_.end() || !found->second.is_counted) return std::nullopt;
  return found->second.bytes;
}

void UpdateLog::Keep(ShardId shard) {
  Part& part = parts_.at(shard);
  if (!part.batch.empty()) Queue(shard, part);
  is_kept_ = true;
}

const std::vector<proto::SnapshotPiece>& UpdateLog::PiecesOf(ShardId shard) const {
  return parts_.at(shard).pieces;
}

void UpdateLog::Wait(std::vector<Buffer> frames, uint64_t bytes) {
  waiting_.push_back({.bytes = bytes, .frames = std::move(frames)});
  end_ += bytes;
}

void UpdateLog::Queue(ShardId shard, Part& part) {
  if (end_ == 0) {
    held_bytes_ += kPartBlockBytes;
    Wait({Buffer::CopyOf(EncodePartHeader(header_))}, kPartBlockBytes);
  }
  UpdateBatch& batch = part.batch;
  proto::SnapshotPiece& piece = part.pieces.emplace_back();
  piece.set_offset(end_ + kPartBlockBytes);
  piece.set_bytes(batch.bytes());
  piece.set_checksum(batch.checksum());
  piece.set_kind(proto::ReplicaPiece::UPDATES);
  piece.set_first(batch.first());
  const PieceHeader header = {.shard = shard,
                              .generation = part.generation,
                              .index = batch.first(),
                              .kind = proto::ReplicaPiece::UPDATES,
                              .first = batch.first(),
                              .bytes = batch.bytes(),
                              .checksum = batch.checksum()};
  const uint64_t bytes = PieceSpace(batch.bytes());
  held_bytes_ += bytes - batch.bytes();
  Wait(PieceFrames(header, batch.Take()), bytes);
}

void UpdateLog::SendMore(Send send) {
  while (!waiting_.empty() && bytes_in_flight_ < kBytesInFlight) {
    Waiting& next = waiting_.front();
    proto::StoreRequest append;
    append.set_path(absl::StrCat(folder_, "/", name_));
    append.mutable_append()->set_offset(sent_bytes_);
    in_flight_[send(std::move(append), std::move(next.frames))] = next.bytes;
    bytes_in_flight_ += next.bytes;
    sent_bytes_ += next.bytes;
    waiting_.pop_front();
  }
  if (!is_closed_ || !is_kept_ || !waiting_.empty() || sync_request_ != 0) return;
  proto::StoreRequest sync;
  sync.set_path(absl::StrCat(folder_, "/", name_));
  sync.mutable_sync();
  sync_request_ = send(std::move(sync), {});
}

bool UpdateLog::OnStoreReply(uint64_t request) {
  if (sync_request_ != 0 && request == sync_request_) {
    is_synced_ = true;
    return true;
  }
  const auto append = in_flight_.find(request);
  if (append == in_flight_.end()) return false;
  bytes_in_flight_ -= append->second;
  held_bytes_ -= append->second;
  in_flight_.erase(append);
  return true;
}

}  // namespace covey::server
