// SPDX-License-Identifier: Apache-2.0
#include "server/snapshot/snapshot_writer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/planted_bug.h"
#include "common/cluster/limits.h"
#include "common/cluster/snapshot_tables.h"
#include "common/snapshot/part_format.h"
#include "common/snapshot/stored_piece.h"
#include "server/replication/chain_place.h"

namespace covey::server {
namespace {

// As for a replica that is being filled: the disk always has something to write, and memory stays
// bounded.
constexpr uint64_t kBytesInFlight = 2 * kReplicaPieceBytesMax;
// After how many bytes shards are put in order again. It takes the loop 0.1 ms for 1,000 shards.
constexpr uint64_t kBytesPerOrder = 16 << 20;

StoredContents::File FileOf(const proto::SnapshotShard& entry) {
  return {entry.folder(), entry.file()};
}

}  // namespace

std::string SnapshotWriter::file() const {
  return absl::StrCat("part-", self_.node.value(), "-", self_.loop, is_second_file_ ? "-idle" : "",
                      ".cvp");
}

void SnapshotWriter::FollowView(const ClusterView& view, const Address& self, Outbox& outbox) {
  self_ = self;
  view_epoch_ = view.epoch();
  const uint64_t ordered = view.proto().has_snapshot() ? view.proto().snapshot().id() : 0;
  if (ordered != order_) {
    Reset(outbox);
    if (ordered != 0) Begin(view);
  }
  for (EarlyCut& early : std::exchange(early_, {})) {
    Add(early.id, early.generation, std::move(early.cut), outbox);
  }
}

void SnapshotWriter::Remove(const std::string& file, Outbox& outbox) {
  proto::StoreRequest remove;
  remove.set_path(absl::StrCat(folder_, "/", file));
  remove.mutable_remove();
  Request(std::move(remove), {}, outbox);
}

void SnapshotWriter::Reset(Outbox& outbox) {
  if (is_writing()) {
    for (const auto& [place, bytes] : files_) {
      if (place.first.empty()) Remove(place.second, outbox);
    }
    if (offset_ > 0) Remove(file(), outbox);
  }
  SnapshotWriter without_order(std::move(is_updated_));
  without_order.self_ = self_;
  without_order.view_epoch_ = view_epoch_;
  without_order.early_ = std::move(early_);
  without_order.next_request_ = next_request_;
  without_order.contents_ = std::move(contents_);
  *this = std::move(without_order);
}

void SnapshotWriter::Begin(const ClusterView& view) {
  const proto::SnapshotOrder& order = view.proto().snapshot();
  job_ = view.proto().job();
  order_ = order.id();
  epoch_ = order.epoch();
  folder_ = order.folder();
  contents_.Begin(folder_, order.base());
  for (const proto::Table& table : view.proto().tables()) {
    if (!IsInSnapshots(table)) continue;
    for (const proto::Shard& shard : table.shards()) {
      if (HasLastFull(shard, self_)) {
        awaited_.insert({TableId(table.id()), ShardIndex(shard.index())});
      }
    }
  }
  is_over_ = awaited_.empty();
}

void SnapshotWriter::Add(ShardId id, uint64_t generation, Replica::TakenCut cut, Outbox& outbox) {
  if (cut.epoch > view_epoch_) {
    std::erase_if(early_, [&](const EarlyCut& early) { return early.id == id; });
    early_.push_back({.id = id, .generation = generation, .cut = std::move(cut)});
    return;
  }
  contents_.Cut(id, generation, cut.content.index);
  if (!is_writing() || cut.snapshot != order_ || awaited_.erase(id) == 0) return;
  if (Planted(PlantedBug::kWindowsNotSaved)) cut.content.push_history = PushHistory();
  for (Buffer& slot : cut.content.slots) {
    if (!Planted(PlantedBug::kSlotsOfAnotherVersion)) break;
    slot = Buffer::CopyOf(std::vector<uint8_t>(slot.size()));  // of version 0
  }
  PendingShard pending;
  pending.entry.set_table(id.table.value());
  pending.entry.set_shard(id.index.value());
  pending.entry.set_generation(generation);
  pending.entry.set_index(cut.content.index);
  pending.entry.set_last_step(cut.content.clocks.highest().value());
  pending.cut = std::move(cut.content);
  if (const proto::SnapshotShard* stored = contents_.Find(id)) {
    unchanged_.push_back({.shard = std::move(pending), .stored = *stored});
  } else {
    pending_.push_back(std::move(pending));
  }
  SendMore(outbox);
}

void SnapshotWriter::SendMore(Outbox& outbox) {
  while (!pending_.empty() && bytes_in_flight_ < kBytesInFlight) {
    if (offset_ - ordered_at_ >= kBytesPerOrder) PutUpdatedFirst();
    SendPiece(outbox);
  }
  if (!awaited_.empty() || !pending_.empty() || sync_request_ != 0) return;
  if (offset_ == 0) return EndFile(outbox);
  proto::StoreRequest sync;
  sync.set_path(absl::StrCat(folder_, "/", file()));
  sync.mutable_sync();
  sync_request_ = next_request_;
  Request(std::move(sync), {}, outbox);
  if (Planted(PlantedBug::kManifestFirst)) EndFile(outbox);
}

void SnapshotWriter::EndFile(Outbox& outbox) {
  sync_request_ = 0;
  if (offset_ > 0) {
    files_[{"", file()}] = offset_;
    contents_.AddFile(file(), offset_);
    offset_ = ordered_at_ = 0;
  }
  DecideUnchanged();
  if (pending_.empty()) return ReportStored(outbox);
  is_second_file_ = true;
  SendMore(outbox);
}

void SnapshotWriter::DecideUnchanged() {
  std::map<StoredContents::File, uint64_t> used;
  for (const Unchanged& unchanged : unchanged_) {
    used[FileOf(unchanged.stored)] += StoredBytesOf(unchanged.stored);
  }
  for (Unchanged& unchanged : std::exchange(unchanged_, {})) {
    const StoredContents::File file = FileOf(unchanged.stored);
    const uint64_t bytes = contents_.BytesOf(file);
    if (2 * used.at(file) < bytes) {
      pending_.push_back(std::move(unchanged.shard));
      continue;
    }
    contents_.Refer(unchanged.stored, unchanged.shard.entry.index());
    files_[file] = bytes;
    sent_.push_back(std::move(unchanged.stored));
  }
}

void SnapshotWriter::PutUpdatedFirst() {
  ordered_at_ = offset_;
  for (PendingShard& shard : pending_) {
    shard.is_updated = shard.content != nullptr || shard.is_updated ||
                       is_updated_({TableId(shard.entry.table()), ShardIndex(shard.entry.shard())},
                                   shard.cut.version);
  }
  std::stable_partition(pending_.begin(), pending_.end(),
                        [](const PendingShard& shard) { return shard.is_updated; });
}

void SnapshotWriter::SendPiece(Outbox& outbox) {
  PendingShard& shard = pending_.front();
  if (offset_ == 0) {
    const PartBlock header = EncodePartHeader({.job = job_, .snapshot = order_, .epoch = epoch_});
    Append({Buffer::CopyOf(header)}, outbox);
  }
  if (shard.content == nullptr) {
    shard.entry.set_file(file());
    shard.content = std::make_unique<ContentExport>(std::move(shard.cut));
  }
  const Message message = shard.content->Piece(shard.next_piece);
  const proto::ReplicaPiece& piece = message.envelope.replica_piece();
  const Buffer& payload = message.frames[0];
  shard.entry.set_version(piece.version());
  shard.entry.set_samples(piece.samples());
  proto::SnapshotPiece& entry = *shard.entry.add_pieces();
  entry.set_offset(offset_ + kPartBlockBytes);
  entry.set_bytes(payload.size());
  entry.set_checksum(message.envelope.frame_checksums(0));
  entry.set_kind(piece.kind());
  entry.set_slot(piece.slot());
  entry.set_first(piece.first());
  Append(PieceFrames(HeaderOf(shard.entry, entry), payload), outbox);
  if (++shard.next_piece < shard.content->pieces()) return;
  contents_.Store(shard.entry);
  sent_.push_back(std::move(shard.entry));
  pending_.pop_front();
}

void SnapshotWriter::Append(std::vector<Buffer> frames, Outbox& outbox) {
  uint64_t bytes = 0;
  for (const Buffer& frame : frames) bytes += frame.size();
  proto::StoreRequest append;
  append.set_path(absl::StrCat(folder_, "/", file()));
  append.mutable_append()->set_offset(offset_);
  in_flight_.emplace(next_request_, bytes);
  bytes_in_flight_ += bytes;
  offset_ += bytes;
  Request(std::move(append), std::move(frames), outbox);
}

void SnapshotWriter::Request(proto::StoreRequest request, std::vector<Buffer> frames,
                             Outbox& outbox) {
  Message message;
  message.set_to({self_.node, kStoreLoop});
  request.set_id(next_request_++);
  *message.envelope.mutable_store_request() = std::move(request);
  for (Buffer& frame : frames) message.frames.push_back(std::move(frame));
  outbox.Send(std::move(message));
}

void SnapshotWriter::OnStoreReply(const Message& message, Outbox& outbox) {
  const uint64_t id = message.envelope.store_reply().id();
  const bool is_sync = id == sync_request_ && id != 0;
  const auto append = in_flight_.find(id);
  if (!is_writing() || (append == in_flight_.end() && !is_sync)) return;
  const absl::Status status = StatusOf(message);
  proto::SnapshotReportRequest report;
  if (!status.ok()) {
    report.set_failure(std::string(status.message()));
    Report(std::move(report), outbox);
    return;
  }
  if (!is_sync) {
    bytes_in_flight_ -= append->second;
    in_flight_.erase(append);
    return SendMore(outbox);
  }
  EndFile(outbox);
}

void SnapshotWriter::ReportStored(Outbox& outbox) {
  proto::SnapshotReportRequest report;
  for (proto::SnapshotShard& shard : sent_) *report.add_shards() = std::move(shard);
  for (const auto& [place, bytes] : files_) {
    proto::SnapshotFile& file = *report.add_files();
    file.set_folder(place.first);
    file.set_name(place.second);
    file.set_bytes(bytes);
  }
  Report(std::move(report), outbox);
}

void SnapshotWriter::Fail(ShardId id, const std::string& why, Outbox& outbox) {
  if (!is_writing()) return;
  proto::SnapshotReportRequest report;
  report.set_failure(
      absl::StrCat("table ", id.table.value(), " shard ", id.index.value(), ": ", why));
  Report(std::move(report), outbox);
}

void SnapshotWriter::Report(proto::SnapshotReportRequest report, Outbox& outbox) {
  is_over_ = true;
  pending_.clear();
  unchanged_.clear();
  report.set_snapshot(order_);
  Message message;
  message.set_to({self_.node, 0});
  *message.envelope.mutable_snapshot_report_request() = std::move(report);
  outbox.Send(std::move(message));
}

}  // namespace covey::server
