// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/buffer_pool.h"
#include "common/cluster/ids.h"
#include "common/cluster/limits.h"
#include "common/cluster/view.h"
#include "common/runtime/actor.h"
#include "server/host_agenda.h"
#include "server/key_lists/key_lists.h"
#include "server/neighbor_routes.h"
#include "server/rate_limit.h"
#include "server/recording/recorder.h"
#include "server/refusals.h"
#include "server/replication/replica.h"
#include "server/replication/shard_counters.h"
#include "server/shard/queue_budget.h"
#include "server/shard/shard.h"
#include "server/shard_host.h"
#include "server/snapshot/shard_loader.h"
#include "server/snapshot/snapshot_writer.h"
#include "server/table/device.h"
#include "server/table/row_memory.h"
#include "server/table/table_budget.h"
#include "server/table/table_memory.h"
#include "server/token_bucket.h"

namespace covey::server {

// One data loop of a server: hosts the shards that the view places on it, and replies to pushes and
// pulls.
//
// It serves the shards whose chain it heads (shard.h) and replicates the others (replica.h).
//
// The control loop sends it its own address, the view and the end of the lease. These messages have
// no connection; the same messages with a connection come from a stranger and are dropped. So is
// every message in the name of a node of the view that another process has sent (sender.h). A
// notice of a lease that is over already is sent back once nothing is served under it any more.
//
// A shard is opened at its first request, or when the loop is idle; opening fills it from the
// initializer, or from a snapshot in the process's store, to which it sends StoreRequest at {self,
// kStoreLoop}.
// A shard stays open through changes of its chain; it is closed, and its content lost, when the
// view takes it away or gives it a new generation.
//
// A request for a shard that is not on this loop is refused: UNAVAILABLE when the sender's view is
// newer (retry, the view is in flight), NOT_FOUND when there is no such table or shard,
// FAILED_PRECONDITION when the shard is on another server or has another generation. Every request
// gets one reply, or none once its deadline has passed.
//
// Actor-confined. Deterministic.
class ShardActor : public Actor {
 public:
  struct Options {
    // Memory kept for updates whose old values are still being sent, over all shards of the loop.
    size_t spare_bytes_max = 16 << 20;
    // How often the load is reported to the control loop.
    absl::Duration report_every = absl::Milliseconds(500);
    // Messages that the loop's transport has refused; added to the reported load. Null = none.
    std::function<uint64_t()> malformed_at_transport;
    // Bytes that may wait in this loop: gradients until their update, records until their
    // acknowledgement, old values until they are read, and lists of keys for later requests. Beyond
    // it pushes and pulls are refused, except those that these gradients may wait for.
    size_t queued_bytes_max = kQueuedBytesDefault;
    // Whether the process has a store of snapshots.
    bool has_store = true;
    // Records what the shards of this loop apply, to {self, kRecordingLoop}; nothing = no
    // recording.
    std::optional<Recorder::Options> recording;
    // Holds the tables, for this loop alone. Null: they are in the memory of the process.
    std::shared_ptr<Device> device;
    // Holds the rows of sparse tables, for this loop alone. Null: likewise.
    std::shared_ptr<RowMemory> rows;
    // Bytes per second that all loops of the server may receive in pushes and pulls, and send in
    // replies; beyond it these requests are refused. Records along chains are never refused. Null:
    // there is no limit.
    std::shared_ptr<TokenBucket> rate;
    // Bytes that the tables on all loops of the server may take. A shard beyond it is not opened,
    // and a push that would make rows beyond it is refused. Null: there is no limit.
    std::shared_ptr<TableBudget> tables;
  };

  explicit ShardActor(const Options& options);

  void Receive(absl::Time now, const Message& message, Outbox& outbox) override;
  // Whether the message is from a node of the view, and from no other process in its name.
  bool KnowsSender(const Message& message) const;
  void Wake(absl::Time now, Outbox& outbox) override;
  absl::Time NextWake() const override;

  // Notes the last digest of each shard, and ends the recording in order. Nothing is recorded after
  // it. Without effect where there is no recording.
  void EndRecording(Outbox& outbox);

  // Options::rate and Options::queued_bytes_max from now on.
  void SetRate(std::shared_ptr<TokenBucket> rate) { rate_.Use(std::move(rate)); }
  void SetQueuedBytesMax(size_t bytes_max);

  const ShardCounters& counters() const { return counters_; }
  // The most records that a shard of this loop has and that the chain behind it has not confirmed.
  uint64_t replication_lag() const;
  // Null when this loop is not the shard's head, or the shard is not open yet.
  const Shard* FindShard(ShardId id) const;
  // Null when this loop is not in the shard's chain.
  const Replica* FindReplica(ShardId id) const;

 private:
  // Null when this loop is not in the shard's chain under this generation.
  ShardHost* FindHost(ShardId id, uint64_t generation) const;
  void Dispatch(absl::Time now, const Message& message, Outbox& outbox);
  void AdoptLease(absl::Time now, const Message& notice, Outbox& outbox);
  void AdoptView(absl::Time now, const Message& message, Outbox& outbox);
  void PassAlongChain(absl::Time now, const Message& message, Outbox& outbox);
  void Push(absl::Time now, const Message& message, Outbox& outbox);
  void Pull(absl::Time now, const Message& message, Outbox& outbox);
  // The host with the open shard; null when the request has been refused.
  ShardHost* Admit(absl::Time now, const MisdirectedRequest& request, Outbox& outbox);
  // `retry_after`: zero = as MakeRefusal.
  void Refuse(absl::Time now, const Message& request, const absl::Status& why,
              absl::Duration retry_after, Outbox& outbox);
  void ReportLoad(absl::Time now, Outbox& outbox);
  // What the hosts have left to the loop is done: cuts are stored, shards loaded, reports sent.
  void FinishCall(absl::Time now, Outbox& outbox);
  // The cuts and loads.
  void ServeSnapshots(absl::Time now, Outbox& outbox);
  void OnStoreReply(absl::Time now, const Message& message, Outbox& outbox);
  // The lists of keys count in the budget.
  void ReportKeyListBytes();
  // Before the hosts follow the view: the recorder is told of shards that get another head.
  void CloseRecords(const ClusterView& next);

  // Constant after construction.
  const Options options_;

  // Owned by the actor's thread.
  Address self_;
  std::shared_ptr<const ClusterView> view_ = ClusterView::Empty();
  absl::Time lease_until_ = absl::InfiniteFuture();
  BufferPool spares_;
  const std::unique_ptr<TableMemory> memory_;
  ShardCounters counters_;
  QueueBudget budget_;
  RateLimit rate_;
  KeyLists key_lists_;
  QueueBudget::Waiting reported_key_lists_;  // to the budget
  std::optional<Recorder> recorder_;
  absl::btree_map<ShardId, std::unique_ptr<ShardHost>> hosts_;
  NeighborRoutes neighbors_;
  HostAgenda agenda_;
  SnapshotWriter snapshot_writer_;
  ShardLoader shard_loader_;
  absl::Time next_report_ = absl::InfiniteFuture();
};

}  // namespace covey::server
