// SPDX-License-Identifier: Apache-2.0
#include "server/snapshot/snapshot_writer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/planted_bug.h"
#include "common/cluster/limits.h"
#include "common/cluster/snapshot_tables.h"
#include "common/snapshot/part_format.h"
#include "common/snapshot/shard_entries.h"
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
    if (ordered != 0) Begin(view, outbox);
  }
  for (EarlyCut& early : std::exchange(early_, {})) {
    Add(early.id, early.generation, std::move(early.cut), outbox);
  }
}

void SnapshotWriter::Remove(const std::string& folder, const std::string& file, Outbox& outbox) {
  proto::StoreRequest remove;
  remove.set_path(absl::StrCat(folder, "/", file));
  remove.mutable_remove();
  Request(std::move(remove), {}, outbox);
}

void SnapshotWriter::RemoveFiles(Outbox& outbox) {
  std::vector<std::string> names;
  for (const auto& [place, bytes] : files_) {
    if (place.first.empty()) names.push_back(place.second);
  }
  if (offset_ > 0) names.push_back(file());
  for (const std::string& name : names) {
    removal_ = next_request_;
    Remove(folder_, name, outbox);
  }
}

void SnapshotWriter::Reset(Outbox& outbox) {
  if (is_writing()) {
    RemoveFiles(outbox);
    DropLogs(outbox);
  }
  SnapshotWriter without_order(std::move(is_updated_));
  without_order.log_ = std::move(log_);
  without_order.self_ = self_;
  without_order.view_epoch_ = view_epoch_;
  without_order.early_ = std::move(early_);
  without_order.next_request_ = next_request_;
  without_order.removal_ = removal_;
  without_order.contents_ = std::move(contents_);
  *this = std::move(without_order);
}

void SnapshotWriter::DropLogs(Outbox& outbox) {
  DropLog(log_, outbox);
  DropLog(closing_, outbox);
}

void SnapshotWriter::DropLog(std::unique_ptr<UpdateLog>& log, Outbox& outbox) {
  if (log != nullptr && log->has_file()) Remove(log->folder(), log->name(), outbox);
  log.reset();
}

void SnapshotWriter::Begin(const ClusterView& view, Outbox& outbox) {
  const proto::SnapshotOrder& order = view.proto().snapshot();
  job_ = view.proto().job();
  order_ = order.id();
  epoch_ = order.epoch();
  folder_ = order.folder();
  is_flush_ = order.is_flush();
  contents_.Begin(folder_, order.base());
  if (log_ != nullptr && log_->folder() != order.base()) DropLog(log_, outbox);
  closing_ = std::move(log_);
  if (is_flush_) {
    log_ = std::make_unique<UpdateLog>(
        PartHeader{.job = job_, .snapshot = order_, .epoch = epoch_}, folder_,
        absl::StrCat("log-", self_.node.value(), "-", self_.loop, ".cvp"));
  }
  for (const proto::Table& table : view.proto().tables()) {
    if (!IsInSnapshots(table)) continue;
    for (const proto::Shard& shard : table.shards()) {
      if (HasLastFull(shard, self_)) {
        awaited_.insert({TableId(table.id()), ShardIndex(shard.index())});
      }
    }
  }
  uncut_ = awaited_;
  is_over_ = awaited_.empty();
}

bool SnapshotWriter::KeepsFrame(ShardId id) const {
  const UpdateLog* const log = uncut_.contains(id) ? closing_.get() : log_.get();
  return log != nullptr && log->IsLogged(id);
}

void SnapshotWriter::OnHeld(ShardId id, uint64_t generation, ShardRecord& record,
                            uint64_t content_bytes) {
  if (!uncut_.contains(id)) {
    if (log_ != nullptr) log_->Add(id, generation, record);
    return;
  }
  if (closing_ != nullptr) closing_->Add(id, generation, record);
  if (record.cut != order_ || record.cut_epoch != Epoch(epoch_)) return;
  uncut_.erase(id);
  if (log_ == nullptr) return;
  log_->Begin(id, generation, record.index,
              BytesToLog(id, generation, record.index, content_bytes));
}

uint64_t SnapshotWriter::BytesToLog(ShardId id, uint64_t generation, uint64_t cut,
                                    uint64_t content_bytes) const {
  // What comes is taken to be what came between the last two cuts.
  const std::optional<uint64_t> expected =
      closing_ == nullptr ? std::nullopt : closing_->BytesOf(id);
  if (!expected) return 0;
  // The logs that this cut refers to, with that which it ends.
  uint64_t bytes = 0;
  size_t logs = 0;
  const uint64_t logged_since = closing_->LoggedSince(id, generation, cut);
  if (const auto* const stored = contents_.Expect(id, generation, cut, logged_since)) {
    for (const proto::SnapshotShard& entry : *stored) {
      if (!IsLog(entry)) continue;
      bytes += StoredBytesOf(entry);
      ++logs;
    }
    bytes += *expected;
    ++logs;
  }
  if (logs >= kLogsPerShardMax || bytes + *expected > content_bytes) return 0;
  return content_bytes - bytes;
}

void SnapshotWriter::SendLogs(Outbox& outbox) {
  const auto send = [&](proto::StoreRequest request, std::vector<Buffer> frames) {
    return Request(std::move(request), std::move(frames), outbox);
  };
  if (log_ != nullptr) log_->SendMore(send);
  if (closing_ != nullptr) closing_->SendMore(send);
}

void SnapshotWriter::Add(ShardId id, uint64_t generation, Replica::TakenCut cut, Outbox& outbox) {
  if (cut.epoch > view_epoch_) {
    std::erase_if(early_, [&](const EarlyCut& early) { return early.id == id; });
    early_.push_back({.id = id, .generation = generation, .cut = std::move(cut)});
    return;
  }
  contents_.Cut(id, generation, cut.content.index,
                closing_ == nullptr ? 0 : closing_->LoggedSince(id, generation, cut.content.index));
  if (!is_writing() || cut.snapshot != order_ || awaited_.erase(id) == 0) return;
  // Where the record was faster than the order.
  uncut_.erase(id);
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
  const StoredContents::Entries* const unchanged = contents_.Find(id);
  const StoredContents::Entries* const logged = contents_.FindLogged(id);
  if (unchanged != nullptr && (is_flush_ || unchanged->size() == 1)) {
    unchanged_.push_back({.shard = std::move(pending), .stored = *unchanged});
  } else if (logged != nullptr && is_flush_) {
    pending.entry.set_version(pending.cut.version.value());
    pending.entry.set_samples(pending.cut.samples);
    closing_->Keep(id);
    logged_.push_back({.id = id, .stored = *logged, .log = std::move(pending.entry)});
  } else {
    pending_.push_back(std::move(pending));
  }
  SendMore(outbox);
}

void SnapshotWriter::SendMore(Outbox& outbox) {
  if (!is_writing() || removal_ != 0) return;
  while (!pending_.empty() && bytes_in_flight_ < kBytesInFlight) {
    if (offset_ - ordered_at_ >= kBytesPerOrder) PutUpdatedFirst();
    SendPiece(outbox);
  }
  if (!awaited_.empty() || !pending_.empty() || sync_request_ != 0 || is_decided_) return;
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
  if (!pending_.empty()) {
    is_second_file_ = true;
    return SendMore(outbox);
  }
  is_decided_ = true;
  if (closing_ != nullptr) closing_->Close();
  SendLogs(outbox);
  ReportStored(outbox);
}

void SnapshotWriter::DecideUnchanged() {
  std::map<StoredContents::File, uint64_t> used;
  const auto use = [&used](const StoredContents::Entries& entries) {
    for (const proto::SnapshotShard& entry : entries) used[FileOf(entry)] += StoredBytesOf(entry);
  };
  for (const Unchanged& unchanged : unchanged_) use(unchanged.stored);
  for (const Logged& logged : logged_) use(logged.stored);
  const auto wastes = [&](const StoredContents::Entries& entries) {
    return std::any_of(entries.begin(), entries.end(), [&](const proto::SnapshotShard& entry) {
      return 2 * used.at(FileOf(entry)) < contents_.BytesOf(FileOf(entry));
    });
  };
  // Of a logged shard there is no content at hand; the next flush has it.
  for (const Logged& logged : logged_) {
    if (wastes(logged.stored)) log_->Stop(logged.id);
  }
  for (Unchanged& unchanged : std::exchange(unchanged_, {})) {
    if (wastes(unchanged.stored)) {
      pending_.push_back(std::move(unchanged.shard));
    } else {
      Refer(std::move(unchanged.stored), unchanged.shard.entry.index());
    }
  }
}

void SnapshotWriter::ReferToLogged() {
  if (logged_.empty()) return;
  contents_.AddLog(closing_->name(), closing_->file_bytes());
  for (Logged& logged : std::exchange(logged_, {})) {
    for (const proto::SnapshotPiece& piece : closing_->PiecesOf(logged.id)) {
      *logged.log.add_pieces() = piece;
    }
    logged.log.set_folder(closing_->folder());
    logged.log.set_file(closing_->name());
    const uint64_t cut = logged.log.index();
    logged.stored.push_back(std::move(logged.log));
    Refer(std::move(logged.stored), cut);
  }
}

void SnapshotWriter::Refer(StoredContents::Entries entries, uint64_t cut) {
  for (const proto::SnapshotShard& entry : entries) {
    files_[FileOf(entry)] = contents_.BytesOf(FileOf(entry));
    sent_.push_back(entry);
  }
  contents_.Refer(std::move(entries), cut);
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
  shard.content->Release(++shard.next_piece);
  if (shard.next_piece < shard.content->pieces()) return;
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

uint64_t SnapshotWriter::Request(proto::StoreRequest request, std::vector<Buffer> frames,
                                 Outbox& outbox) {
  Message message;
  message.set_to({self_.node, kStoreLoop});
  request.set_id(next_request_++);
  *message.envelope.mutable_store_request() = std::move(request);
  for (Buffer& frame : frames) message.frames.push_back(std::move(frame));
  outbox.Send(std::move(message));
  return next_request_ - 1;
}

void SnapshotWriter::OnStoreReply(const Message& message, Outbox& outbox) {
  const uint64_t id = message.envelope.store_reply().id();
  const absl::Status status = StatusOf(message);
  if (log_ != nullptr && log_->OnStoreReply(id)) {
    if (!status.ok()) DropLog(log_, outbox);
    return SendLogs(outbox);
  }
  if (closing_ != nullptr && closing_->OnStoreReply(id)) {
    if (!status.ok()) return OnLogFailure(status, outbox);
    SendLogs(outbox);
    return ReportStored(outbox);
  }
  if (id == removal_) {
    removal_ = 0;
    return SendMore(outbox);
  }
  const bool is_sync = id == sync_request_ && id != 0;
  const auto append = in_flight_.find(id);
  if (!is_writing() || (append == in_flight_.end() && !is_sync)) return;
  if (!status.ok()) return ReportFailure(std::string(status.message()), outbox);
  if (!is_sync) {
    bytes_in_flight_ -= append->second;
    in_flight_.erase(append);
    return SendMore(outbox);
  }
  EndFile(outbox);
}

void SnapshotWriter::OnLogFailure(const absl::Status& why, Outbox& outbox) {
  if (is_writing() && !logged_.empty()) return ReportFailure(std::string(why.message()), outbox);
  DropLog(closing_, outbox);
  ReportStored(outbox);
}

void SnapshotWriter::ReportStored(Outbox& outbox) {
  if (!is_writing() || !is_decided_) return;
  if (closing_ != nullptr && !closing_->is_durable()) return;
  ReferToLogged();
  // Of a log that nothing refers to, nobody else knows.
  const bool is_used =
      closing_ != nullptr && files_.contains({closing_->folder(), closing_->name()});
  if (is_used) {
    closing_.reset();
  } else {
    DropLog(closing_, outbox);
  }
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
  ReportFailure(absl::StrCat("table ", id.table.value(), " shard ", id.index.value(), ": ", why),
                outbox);
}

void SnapshotWriter::ReportFailure(const std::string& why, Outbox& outbox) {
  RemoveFiles(outbox);
  DropLogs(outbox);
  proto::SnapshotReportRequest report;
  report.set_failure(why);
  Report(std::move(report), outbox);
}

void SnapshotWriter::Report(proto::SnapshotReportRequest report, Outbox& outbox) {
  is_over_ = true;
  pending_.clear();
  unchanged_.clear();
  logged_.clear();
  report.set_snapshot(order_);
  Message message;
  message.set_to({self_.node, 0});
  *message.envelope.mutable_snapshot_report_request() = std::move(report);
  outbox.Send(std::move(message));
}

}  // namespace covey::server
