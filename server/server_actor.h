// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/runtime/actor.h"
#include "common/runtime/member.h"
#include "server/data_loop_watch.h"
#include "server/replica_reports.h"
#include "server/server_drain.h"
#include "server/snapshot_reports.h"

namespace covey::server {

// A server's control loop (loop 0). It keeps the server a member of the cluster, and forwards each
// new view and the end of the lease to the data loops (loops 1 …) of the process. It adds up the
// loads that they report, and forwards their reports about replicas and snapshots to the scheduler.
// It drains the server before the server leaves.
//
// When a data loop hangs, the server leaves at once with all its shards, and their other replicas
// take over. A server that has the only copy of a shard ends without a goodbye: the loop may go on
// to serve it as long as the lease lasts, which only the death of a server makes others wait for.
//
// Actor-confined. Deterministic in its options.
class ServerActor : public Actor {
 public:
  struct Options {
    // role is set here; endpoints as in Node.endpoints: [0] empty, then one per data loop.
    Member::Options member;
  };

  explicit ServerActor(const Options& options);

  // ServerLoad.table_bytes_max from now on.
  void SetTableBytesMax(uint64_t bytes_max);

  void Receive(absl::Time now, const Message& message, Outbox& outbox) override;
  void Wake(absl::Time now, Outbox& outbox) override;
  absl::Time NextWake() const override;

  // Leaves once its shards are elsewhere, or, at `deadline`, once its data loops serve nothing any
  // more that no other server holds; member().state() becomes kLeft. A
  // server that is draining in the view leaves by itself once it is in no chain.
  void Leave(absl::Time now, std::string reason, absl::Time deadline, Outbox& outbox);

  const Member& member() const { return member_; }
  // Of all data loops, and with what tables may take, as the next heartbeat reports it.
  proto::ServerLoad load() const;
  // The data loop that has been silent for the longest time; nothing before they were given a view.
  std::optional<DataLoopWatch::SilentLoop> silent_loop(absl::Time now) const {
    return watch_.Longest(now);
  }
  // The loop that hangs, and since when; OK: none does.
  const absl::Status& hang() const { return hang_; }
  // The process is to end: the server is no member any more, or must end without a goodbye.
  bool is_over() const;

  // Called when the view or the state of the membership has changed, before the data loops are
  // informed. At most one callback.
  void OnChange(std::function<void(absl::Time, Outbox&)> callback) {
    on_change_ = std::move(callback);
  }

 private:
  void MembershipChanged(absl::Time now, Outbox& outbox);
  void ForwardLease(Outbox& outbox);
  void TakeLoad(absl::Time now, const Message& message);
  void CheckLoops(absl::Time now, Outbox& outbox);
  // A data loop hangs: leaves, unless it must not, by the newest view.
  void FollowHang(absl::Time now, Outbox& outbox);

  uint64_t next_request_id_ = 1;
  Member member_;
  ReplicaReports reports_;
  SnapshotReports snapshots_;
  uint64_t table_bytes_max_ = 0;
  std::vector<proto::ServerLoad> loads_;  // by data loop, as last reported
  DataLoopWatch watch_;
  ServerDrain drain_;
  absl::Status hang_;
  enum class Goodbye { kNone, kSaid, kForbidden };
  Goodbye goodbye_ = Goodbye::kNone;  // because of the hang
  Epoch forwarded_;
  absl::Time forwarded_lease_ = absl::InfiniteFuture();
  std::function<void(absl::Time, Outbox&)> on_change_;
};

}  // namespace covey::server
