// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/net/message.h"
#include "common/runtime/actor.h"
#include "proto/log.pb.h"
#include "scheduler/audit_trail.h"
#include "scheduler/config.h"
#include "scheduler/event_trail.h"
#include "scheduler/log/commit_pipeline.h"
#include "scheduler/machines.h"
#include "scheduler/request_handlers.h"
#include "scheduler/state/cluster_state.h"
#include "scheduler/trace/trace_desk.h"
#include "scheduler/watches.h"

namespace covey::scheduler {

// The scheduler: decides which nodes are in the cluster, and which server holds which shard. It
// passes each message to its handler, which calls one of the Machines. Machines edit one
// ClusterState in transactions, and replies leave when the CommitPipeline has made these durable.
//
//   request ─▶ RequestHandlers ─▶ machine ─▶ Transaction ─▶ CommitPipeline ─▶ view, replies
//                                                             │      ▲
//                                                   DiskAppend▼      │DiskDurable
//
// Invariants:
//  1. A reply or a view leaves only when every decision made before it is durable. Only replies to
//     good heartbeats leave at once, with the published epoch.
//  2. Every request is answered, a watch or barrier at its deadline at the latest; requests of
//     nodes that are dead, gone or unknown get ABORTED.
//  3. While the scheduler itself stood still, or could not write its log, no node's silence counts.
//
// Sends DiskAppend to {self, kDiskLoop} and expects DiskDurable back; likewise ProbeRequest to
// {self, kProbeLoop} and ProbeReply, and StoreRequest to {self, kStoreLoop} and StoreReply.
// Actor-confined and deterministic.
class SchedulerActor : public Actor {
 public:
  // `recovered`: the newest record of the log (RecoverLog); nothing = a new job.
  SchedulerActor(const Config& config, std::optional<proto::LogRecord> recovered);

  // Between two calls: Machines::SetOptions.
  void SetOptions(const Config& config) { machines_.SetOptions(config); }
  // RequestHandlers::SetLeadsUntil.
  void SetLeadsUntil(absl::Time until) { handlers_.SetLeadsUntil(until); }

  void Receive(absl::Time now, const Message& message, Outbox& outbox) override;
  void Wake(absl::Time now, Outbox& outbox) override;
  absl::Time NextWake() const override;

  // The view that others may know: the newest durable one.
  const proto::ClusterView& published() const { return pipeline_.published(); }
  // Not OK while the log cannot be written. Until it can, only heartbeats and watches that wait are
  // answered, everything else is refused, and no timer but that of the next try runs.
  const absl::Status& disk_failure() const { return pipeline_.disk_failure(); }
  // What `covey status` shows, without events; and how often which events have happened.
  proto::StatusReply Status(absl::Time now) const;
  const EventCounts& event_counts() const { return state_.event_counts(); }
  const DurationHistogram& log_write_times() const { return pipeline_.write_times(); }
  const DurationHistogram& snapshot_part_times() const { return machines_.snapshots.part_times(); }
  // Calls of callers that have no right to them.
  uint64_t denied() const { return audit_.refused(); }
  // Called once, inside Receive or Wake, when the job must stop: Chains::why_stop().
  void OnLoss(std::function<void(const std::string& why)> callback) {
    on_loss_ = std::move(callback);
  }
  // The process is to end: serves on while servers that leave need it (Scaling::SchedulerMayEnd),
  // and then calls `done` once, inside this or a later call.
  void Stop(absl::Time now, std::function<void()> done, Outbox& outbox);
  // Called with the text of each decision, inside Receive or Wake; for the process's own log.
  void OnDecision(std::function<void(const std::string&)> callback) {
    on_decision_ = std::move(callback);
  }

  // Called for calls that administer the job, and refused ones, inside Receive.
  void OnAudit(std::function<void(const AuditEntry&)> callback) {
    audit_.OnEntry(std::move(callback));
  }

 private:
  // Begin is the first thing of each call, and Finish the last.
  void Begin(absl::Time now);
  void Finish(absl::Time now, Outbox& outbox);

  void OnDiskDurable(absl::Time now, const Message& message, Outbox& outbox);
  void AnswerWatches(absl::Time now, Outbox& outbox);
  void OnConnectionLost(const Message& message, Outbox& outbox);
  void OnProbeReply(absl::Time now, const Message& message, Outbox& outbox);

  // Constant after construction.
  const Config config_;

  ClusterState state_;
  CommitPipeline pipeline_;
  Machines machines_;
  EventTrail trail_;
  AuditTrail audit_;
  TraceDesk traces_;
  Watches watches_;
  RequestHandlers handlers_;

  absl::Time started_ = absl::InfiniteFuture();
  absl::Time last_call_;
  // The time of the last tick, rather than of the last call, so that a stream of messages does not
  // postpone the timers.
  absl::Time last_tick_ = absl::InfinitePast();
  std::function<void(const std::string&)> on_decision_;
  std::function<void(const std::string&)> on_loss_;  // not called yet
  // From Stop until the process may end.
  std::function<void()> on_stopped_;
  absl::Time stopping_since_ = absl::InfiniteFuture();
};

}  // namespace covey::scheduler
