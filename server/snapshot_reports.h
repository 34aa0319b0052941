// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "common/cluster/view.h"
#include "common/net/message.h"
#include "common/runtime/actor.h"
#include "proto/scheduler.pb.h"

namespace covey::server {

// The reports to the scheduler about the parts of a snapshot that this process has stored. A report
// is repeated until it is answered, or the view orders another snapshot or none.
//
// Actor-confined. Deterministic. At most one report per data loop.
class SnapshotReports {
 public:
  // `next_request_id` is shared with the other state machines of the loop, and outlives this
  // object.
  explicit SnapshotReports(uint64_t& next_request_id) : next_request_id_(next_request_id) {}

  // Takes the report of a data loop of this process.
  void Add(absl::Time now, proto::SnapshotReportRequest report);
  void FollowView(const ClusterView& view);
  // Precondition: a SnapshotReportReply.
  void OnReply(const Message& reply);

  void Wake(absl::Time now, Outbox& outbox);
  absl::Time NextWake() const { return reports_.empty() ? absl::InfiniteFuture() : next_; }

 private:
  struct Report {
    proto::SnapshotReportRequest request;
    uint64_t request_id = 0;
  };

  uint64_t& next_request_id_;
  std::vector<Report> reports_;  // not answered yet
  absl::Time next_ = absl::InfiniteFuture();
};

}  // namespace covey::server
