// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/net/message.h"
#include "common/runtime/actor.h"
#include "scheduler/audit_trail.h"
#include "scheduler/config.h"
#include "scheduler/event_trail.h"
#include "scheduler/log/commit_pipeline.h"
#include "scheduler/machines.h"
#include "scheduler/state/cluster_state.h"
#include "scheduler/trace/trace_desk.h"
#include "scheduler/watches.h"

namespace covey::scheduler {

// One handler for each control request: it calls the machine that the request concerns, and makes
// the reply. Requests of senders that may not send them (access.h) are refused.
//
// Actor-confined, deterministic. The collaborators outlive it.
class RequestHandlers {
 public:
  RequestHandlers(const Config& config, ClusterState& state, Machines& machines,
                  CommitPipeline& pipeline, Watches& watches, const EventTrail& trail,
                  AuditTrail& audit, TraceDesk& traces);

  // From then on another scheduler may lead, which gives leases of its own: this one gives none,
  // unless this is called again. Infinite future at first.
  void SetLeadsUntil(absl::Time until) { leads_until_ = until; }

  // `uptime`: since the scheduler started. Messages that are not control requests are ignored.
  void Handle(absl::Time now, absl::Duration uptime, const Message& request, Outbox& outbox);

  // Brings chains up to date with the commits of this call; replies that contain a view come after
  // that.
  void ReconcileChains(absl::Time now);
  // When ReconcileChains has something to do. Infinite while a record is being written: no edit
  // could be published before, and in the meantime reports are collected.
  absl::Time NextReconcile() const;

  // What GetStatus answers, without events.
  void FillStatus(absl::Time now, absl::Duration uptime, proto::StatusReply& status) const;

  // Answers a watch with the published view, or what has changed; see UnpackWatchReply.
  void AnswerWatch(const Message& request, Outbox& outbox);

 private:
  // A request, with the call of the actor in which it arrived.
  struct Call {
    absl::Time now;
    absl::Duration uptime;
    const Message& request;
    Outbox& outbox;

    const proto::Envelope& envelope() const { return request.envelope; }
    NodeId sender() const { return request.from().node; }
  };

  // One method for each control method; Handle calls it by its name (control_methods.h).
  void Register(const Call& call);
  void Heartbeat(const Call& call);
  void WatchView(const Call& call);
  void CreateTable(const Call& call);
  void InitializeTables(const Call& call);
  void DropTable(const Call& call);
  void SetContract(const Call& call);
  void ListTables(const Call& call);
  void Barrier(const Call& call);
  void Leave(const Call& call);
  void GetStatus(const Call& call);
  void Drain(const Call& call);
  void Scale(const Call& call);
  void Quarantine(const Call& call);
  void ReportReplicas(const Call& call);
  void ReportSnapshot(const Call& call);
  void CreateSnapshot(const Call& call);
  void RestoreTables(const Call& call);
  void GetWork(const Call& call);
  void StartTrace(const Call& call);
  void ReportTrace(const Call& call);
  void GetTrace(const Call& call);

  // Logged at each power of two.
  void LogImplausible(NodeId node, const proto::Progress& progress);
  void Refuse(const Call& call, const absl::Status& status);
  // Sends `reply` when everything committed so far is durable.
  void Answer(const Call& call, Message reply);

  const Config& config_;
  ClusterState& state_;
  Machines& machines_;
  CommitPipeline& pipeline_;
  Watches& watches_;
  const EventTrail& trail_;
  AuditTrail& audit_;
  TraceDesk& traces_;
  uint64_t implausible_ = 0;  // heartbeats with progress that no group can have made
  absl::Time leads_until_ = absl::InfiniteFuture();
};

}  // namespace covey::scheduler
