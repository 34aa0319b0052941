// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <tuple>

#include "absl/container/btree_map.h"
#include "absl/time/time.h"
#include "common/cluster/view.h"
#include "common/net/message.h"
#include "common/runtime/actor.h"
#include "proto/scheduler.pb.h"

namespace covey::server {

// The reports to the scheduler about the replicas of this process. A report is repeated until a
// view shows a newer chain, or, of a replica that is LOADED, that its table is no longer being
// restored. Many reports travel in one request.
//
// Actor-confined. Deterministic. At most one report per shard, replica and kind.
class ReplicaReports {
 public:
  // `next_request_id` is shared with the other state machines of the loop, and outlives this
  // object.
  explicit ReplicaReports(uint64_t& next_request_id) : next_request_id_(next_request_id) {}

  // Takes reports from a data loop of this process.
  void Add(absl::Time now, const proto::ReplicaReportRequest& request);
  // Removes the reports that a newer chain has made obsolete.
  void FollowView(const ClusterView& view);

  void Wake(absl::Time now, Outbox& outbox);
  absl::Time NextWake() const { return reports_.empty() ? absl::InfiniteFuture() : next_; }
  size_t size() const { return reports_.size(); }

 private:
  // Table, shard, node, kind.
  using Key = std::tuple<uint32_t, uint32_t, uint64_t, int>;

  uint64_t& next_request_id_;
  absl::btree_map<Key, proto::ReplicaReport> reports_;
  absl::Time next_ = absl::InfiniteFuture();
};

}  // namespace covey::server
