// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "common/cluster/ids.h"
#include "common/cluster/view.h"
#include "common/net/message.h"
#include "common/runtime/actor.h"
#include "proto/scheduler.pb.h"
#include "server/replication/held_records.h"
#include "server/replication/replica.h"
#include "server/snapshot/stored_contents.h"
#include "server/snapshot/update_log.h"

namespace covey::server {

// Stores a loop's part of the snapshot that the view orders: the content of each shard of which
// this loop has the last full replica.
//
//   cuts ─▶ pieces, a bounded number of bytes in flight ─▶ store ─▶ synced ─▶ report
//     ├───▶ unchanged since the newest complete snapshot: a reference ─────────▶┤
//     └───▶ a flush, and all updates since then are in its log: a reference ───▶┘
//
// From the cut of a flush on, what shards apply is logged (update_log.h), so that the next flush
// need not store their content: as long as their logs take no more bytes than their content, and
// the updates between the last two flushes suggest that they will not. All other snapshots hold
// content. Where a snapshot is not completed, or the store refuses, the next one stores content.
//
// Where the unchanged shards are less than half of an earlier file, they are stored once more, in a
// file of their own, so that references keep at most twice their bytes in the store.
//
// Nothing waits for the store: cuts are handles, and training goes on meanwhile. A part that cannot
// be stored is reported as a failure; an order that is withdrawn is forgotten. The files of both
// are removed, and the next order sends nothing before that is done: however fast orders fail, the
// store's queue does not grow, and who reads from it waits for one part at most.
//
// Actor-confined. Deterministic. Memory: the old values and slots of shards that have been updated
// since their cuts, until these are stored. Such shards are stored before others, because others
// cost no memory yet. The old arrays of unchanged shards stay until the first file is synced, if
// updates follow. And the entries of the manifest, for the next snapshot. Of logs as UpdateLog.
class SnapshotWriter final : public HeldRecords {
 public:
  // Whether a shard of this loop has been updated since it had this version.
  using IsUpdated = std::function<bool(ShardId, Version)>;

  explicit SnapshotWriter(IsUpdated is_updated) : is_updated_(std::move(is_updated)) {}

  // The newest view, and who this loop is in it. To be called before the shards follow the view.
  void FollowView(const ClusterView& view, const Address& self, Outbox& outbox);
  // A shard of this loop has been cut: by an order of the newest view or, where the record of the
  // head is faster, of a view that comes later. A cut of another order is dropped.
  void Add(ShardId id, uint64_t generation, Replica::TakenCut cut, Outbox& outbox);
  // As HeldRecords. Without effect until a flush has been ordered.
  bool wants_records() const override { return log_ != nullptr || closing_ != nullptr; }
  bool KeepsFrame(ShardId id) const override;
  void OnHeld(ShardId id, uint64_t generation, ShardRecord& record,
              uint64_t content_bytes) override;
  // Sends what OnHeld has left. To be called after each call of the loop.
  void SendLogs(Outbox& outbox);
  // A shard of this loop makes no cut.
  void Fail(ShardId id, const std::string& why, Outbox& outbox);
  // Precondition: a StoreReply of this process.
  void OnStoreReply(const Message& reply, Outbox& outbox);

 private:
  struct PendingShard {
    bool is_updated = false;  // since its cut
    proto::SnapshotShard entry;
    ContentCut cut;
    std::unique_ptr<ContentExport> content;  // of `cut`, once its turn has come
    uint64_t next_piece = 0;
  };

  // A shard that the base holds as it is.
  struct Unchanged {
    PendingShard shard;  // if it is stored all the same
    StoredContents::Entries stored;
  };

  // A shard that the base holds, with all updates since in `closing_`.
  struct Logged {
    ShardId id;
    StoredContents::Entries stored;
    proto::SnapshotShard log;  // without its pieces
  };

  // A cut by an order that no view has shown yet.
  struct EarlyCut {
    ShardId id;
    uint64_t generation;
    Replica::TakenCut cut;
  };

  // Forgets the order; what is in flight means nothing any more.
  void Reset(Outbox& outbox);
  void Begin(const ClusterView& view, Outbox& outbox);
  // The logs of a snapshot that is not completed, or that is not the base of the next.
  void DropLogs(Outbox& outbox);
  void DropLog(std::unique_ptr<UpdateLog>& log, Outbox& outbox);
  // Bytes that the log of a shard may take after this cut.
  uint64_t BytesToLog(ShardId id, uint64_t generation, uint64_t cut, uint64_t content_bytes) const;
  // Refers to the logged shards, once the log is in the store.
  void ReferToLogged();
  void Refer(StoredContents::Entries entries, uint64_t cut);
  // The store does not take the log of the base.
  void OnLogFailure(const absl::Status& why, Outbox& outbox);
  bool is_writing() const { return order_ != 0 && !is_over_; }
  void SendMore(Outbox& outbox);
  // Of the shards whose turn has not come, those that were updated come first.
  void PutUpdatedFirst();
  void SendPiece(Outbox& outbox);
  // Appends the frames to the present file.
  void Append(std::vector<Buffer> frames, Outbox& outbox);
  // The present file is complete, or there is none.
  void EndFile(Outbox& outbox);
  // Refers to the unchanged shards, or makes them pending.
  void DecideUnchanged();
  // Its id.
  uint64_t Request(proto::StoreRequest request, std::vector<Buffer> frames, Outbox& outbox);
  void Remove(const std::string& folder, const std::string& file, Outbox& outbox);
  // The order's files, which nothing refers to.
  void RemoveFiles(Outbox& outbox);
  // If all is stored.
  void ReportStored(Outbox& outbox);
  void ReportFailure(const std::string& why, Outbox& outbox);
  void Report(proto::SnapshotReportRequest report, Outbox& outbox);
  std::string file() const;  // the present one's name

  IsUpdated is_updated_;
  Address self_;
  Epoch view_epoch_;
  std::vector<EarlyCut> early_;
  uint64_t next_request_ = 1;
  uint64_t removal_ = 0;  // the last request about an earlier order; 0 = it is answered
  StoredContents contents_;
  // What shards apply after their cuts by the newest order, if that is a flush; and after those by
  // the base, up to the cuts by the newest order. Null = none.
  std::unique_ptr<UpdateLog> log_;
  std::unique_ptr<UpdateLog> closing_;

  // The rest belongs to the order.
  uint64_t job_ = 0;
  // SnapshotOrder.id; 0 = none. Whether nothing more is to be done for it.
  uint64_t order_ = 0;
  bool is_over_ = true;
  uint64_t epoch_ = 0;
  std::string folder_;
  bool is_flush_ = false;
  absl::btree_set<ShardId> awaited_;  // not cut yet
  absl::btree_set<ShardId> uncut_;    // the same, by the records that were held
  std::deque<PendingShard> pending_;  // cut; the first is being sent
  std::vector<Unchanged> unchanged_;  // cut; nothing is decided
  std::vector<Logged> logged_;        // cut
  bool is_decided_ = false;           // of the unchanged shards, and all content is in the store
  std::vector<proto::SnapshotShard> sent_;
  std::map<StoredContents::File, uint64_t> files_;  // complete; folder empty = the order's
  bool is_second_file_ = false;                     // of the unchanged shards
  uint64_t offset_ = 0;                     // size of the present file, with what is in flight
  uint64_t ordered_at_ = 0;                 // `offset_` when pending_ was last put in order
  std::map<uint64_t, uint64_t> in_flight_;  // bytes by request
  uint64_t bytes_in_flight_ = 0;
  uint64_t sync_request_ = 0;  // 0 = not sent
};

}  // namespace covey::server
