// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/runtime/actor.h"
#include "common/runtime/member.h"
#include "server/replica_reports.h"
#include "server/server_drain.h"
#include "server/snapshot_reports.h"

namespace covey::server {

// A server's control loop (loop 0). It keeps the server a member of the cluster, and forwards each
// new view and the end of the lease to the data loops (loops 1 …) of the process. It adds up the
// loads that they report, and forwards their reports about replicas and snapshots to the scheduler.
// It drains the server before the server leaves.
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

  // Called when the view or the state of the membership has changed, before the data loops are
  // informed. At most one callback.
  void OnChange(std::function<void(absl::Time, Outbox&)> callback) {
    on_change_ = std::move(callback);
  }

 private:
  void MembershipChanged(absl::Time now, Outbox& outbox);
  void ForwardLease(Outbox& outbox);
  void TakeLoad(const Message& message);

  uint64_t next_request_id_ = 1;
  Member member_;
  ReplicaReports reports_;
  SnapshotReports snapshots_;
  uint64_t table_bytes_max_ = 0;
  std::vector<proto::ServerLoad> loads_;  // by data loop, as last reported
  ServerDrain drain_;
  Epoch forwarded_;
  absl::Time forwarded_lease_ = absl::InfiniteFuture();
  std::function<void(absl::Time, Outbox&)> on_change_;
};

}  // namespace covey::server
