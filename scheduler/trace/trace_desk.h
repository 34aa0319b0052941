// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/trace/trace_source.h"
#include "proto/scheduler.pb.h"
#include "scheduler/state/cluster_state.h"

namespace covey::scheduler {

// Traces: tells nodes when to record what their threads do, and keeps what they report until
// somebody has fetched it. One trace at a time; the newest is kept until the next one begins. Not
// in the log: a restart forgets it, and nodes then end it by themselves.
//
// Memory: kTraceBytesMax of reports. Actor-confined; deterministic without a TraceSource.
class TraceDesk {
 public:
  // `own`: of this process; null = none. Both outlive the desk.
  TraceDesk(TraceSource* own, const ClusterState& state) : own_(own), state_(state) {}

  // FAILED_PRECONDITION: one is under way. INVALID_ARGUMENT: duration.
  absl::StatusOr<proto::TraceOrder> Start(absl::Time now, const proto::StartTraceRequest& request);
  // What a node does from now on, into the answer to its heartbeat.
  void Tell(absl::Time now, NodeId node, proto::HeartbeatReply& reply);
  // Of an ALIVE node. NOT_FOUND, RESOURCE_EXHAUSTED: as TraceReportRequest says.
  absl::Status OnReport(NodeId node, const proto::TraceReportRequest& request);
  // NOT_FOUND: there is no such trace.
  absl::StatusOr<proto::TraceReply> Get(absl::Time now, const proto::TraceRequest& request);

 private:
  struct Reporter {
    uint32_t next = 0;  // number of its next piece
    bool is_done = false;
  };

  bool IsUnderWay(absl::Time now) const { return trace_ != 0 && now < ends_; }
  proto::TraceOrder Order(absl::Time now) const;
  // Takes what this process has recorded, once the trace is over.
  void TakeOwn(absl::Time now);
  void Keep(NodeId node, const std::string& name, proto::TracePiece piece);

  TraceSource* const own_;
  const ClusterState& state_;

  uint64_t trace_ = 0;  // TraceOrder.trace; 0 = none yet
  absl::Time ends_ = absl::InfinitePast();
  bool own_is_on_ = false;
  uint32_t spans_max_ = 0;
  std::map<NodeId, Reporter> told_;
  std::vector<std::string> pieces_;  // encoded, in order of arrival
  size_t bytes_ = 0;                 // of these
  uint64_t refused_ = 0;
};

}  // namespace covey::scheduler
