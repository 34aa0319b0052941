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
#include "server/replication/replica.h"
#include "server/snapshot/stored_contents.h"

namespace covey::server {

// Stores a loop's part of the snapshot that the view orders: the content of each shard of which
// this loop has the last full replica.
//
//   cuts ─▶ pieces, a bounded number of bytes in flight ─▶ store ─▶ synced ─▶ report
//     └───▶ unchanged since the newest complete snapshot: a reference ─────────▶┘
//
// Where the unchanged shards are less than half of an earlier file, they are stored once more, in a
// file of their own, so that references keep at most twice their bytes in the store.
//
// Nothing waits for the store: cuts are handles, and training goes on meanwhile. A part that cannot
// be stored is reported as a failure; an order that is withdrawn is forgotten, its files removed.
//
// Actor-confined. Deterministic. Memory: the old values and slots of shards that have been updated
// since their cuts, until these are stored. Such shards are stored before others, because others
// cost no memory yet. The old arrays of unchanged shards stay until the first file is synced, if
// updates follow. And the entries of the manifest, for the next snapshot.
class SnapshotWriter {
 public:
  // Whether a shard of this loop has been updated since it had this version.
  using IsUpdated = std::function<bool(ShardId, Version)>;

  explicit SnapshotWriter(IsUpdated is_updated) : is_updated_(std::move(is_updated)) {}

  // The newest view, and who this loop is in it. To be called before the shards follow the view.
  void FollowView(const ClusterView& view, const Address& self, Outbox& outbox);
  // A shard of this loop has been cut: by an order of the newest view or, where the record of the
  // head is faster, of a view that comes later. A cut of another order is dropped.
  void Add(ShardId id, uint64_t generation, Replica::TakenCut cut, Outbox& outbox);
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
    proto::SnapshotShard stored;
  };

  // A cut by an order that no view has shown yet.
  struct EarlyCut {
    ShardId id;
    uint64_t generation;
    Replica::TakenCut cut;
  };

  // Forgets the order; what is in flight means nothing any more.
  void Reset(Outbox& outbox);
  void Begin(const ClusterView& view);
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
  void Request(proto::StoreRequest request, std::vector<Buffer> frames, Outbox& outbox);
  void Remove(const std::string& file, Outbox& outbox);
  void ReportStored(Outbox& outbox);
  void Report(proto::SnapshotReportRequest report, Outbox& outbox);
  std::string file() const;  // the present one's name

  IsUpdated is_updated_;
  Address self_;
  Epoch view_epoch_;
  std::vector<EarlyCut> early_;
  uint64_t next_request_ = 1;
  StoredContents contents_;

  // The rest belongs to the order.
  uint64_t job_ = 0;
  // SnapshotOrder.id; 0 = none. Whether nothing more is to be done for it.
  uint64_t order_ = 0;
  bool is_over_ = true;
  uint64_t epoch_ = 0;
  std::string folder_;
  absl::btree_set<ShardId> awaited_;  // not cut yet
  std::deque<PendingShard> pending_;  // cut; the first is being sent
  std::vector<Unchanged> unchanged_;  // cut; nothing is decided
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
