#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/net/control_methods.h"
#include "common/net/message.h"
#include "common/runtime/actor.h"
#include "proto/log.pb.h"
#include "scheduler/barrier.h"
#include "scheduler/config.h"
#include "scheduler/event_trail.h"
#include "scheduler/groups/groups.h"
#include "scheduler/groups/stragglers.h"
#include "scheduler/nodes/fleet.h"
#include "scheduler/nodes/membership.h"
#include "scheduler/placement/chains.h"
#include "scheduler/tables/governor.h"
#include "scheduler/tables/tables.h"
#include "scheduler/watches.h"
#include "scheduler/work/work.h"

namespace covey::scheduler {

// Who is in the cluster and who owns what: the only actor that raises epochs. Dispatches requests
// to its machines (Membership, Groups, Stragglers, Tables, Chains, Governor, Barriers), which edit
// one state; makes each edit durable; then answers.
//
//   request ─▶ machine edits state_ ─▶ DiskAppend ─▶ DiskDurable ─▶ publish view, send answers
//
// One record is written at a time; what is decided meanwhile goes together into the next.
//
// Invariants:
//  1. An answer or a view leaves only when every decision made before it is durable. Only good
//     heartbeats are answered at once, with the published epoch.
//  2. The epoch of published views never goes back, over restarts too.
//  3. Every request is answered, a watch or barrier at its deadline at the latest; requests of
//     nodes that are dead, gone or unknown get ABORTED.
//  4. Silence counts against nobody while the scheduler itself stood still.
//
// Sends DiskAppend to {self, kDiskLoop} and expects DiskDurable back; so with ProbeRequest,
// kProbeLoop and ProbeReply. Actor-confined and deterministic.
class SchedulerActor : public Actor {
 public:
  // `recovered`: the newest record of the log (RecoverLog); nothing = a new job.
  SchedulerActor(const Config& config, std::optional<proto::LogRecord> recovered);

  void Receive(absl::Time now, const Message& message, Outbox& outbox) override;
  void Wake(absl::Time now, Outbox& outbox) override;
  absl::Time NextWake() const override;

  // What others may know: the newest durable view.
  const proto::ClusterView& published() const { return published_; }
  // Not OK once the log cannot be written any more; from then on every request is refused.
  const absl::Status& disk_failure() const { return disk_failure_; }
  // Called with the text of each decision, inside Receive or Wake; for the process's own log.
  void OnDecision(std::function<void(const std::string&)> callback) {
    on_decision_ = std::move(callback);
  }

 private:
  // First and last thing of each call.
  void Begin(absl::Time now);
  void Finish(Outbox& outbox);

  void Dispatch(absl::Time now, const Message& message, Outbox& outbox);
  // What is common to all requests: right job, a sender who may call the method.
  absl::Status Check(const ControlMethod& method, const Message& message) const;
  absl::Status DiskStatus() const;
  // As in HeartbeatReply.
  uint32_t LeaseMs() const {
    return static_cast<uint32_t>(absl::ToInt64Milliseconds(config_.lease));
  }
  // One handler per control method, which Dispatch calls by its name (control_methods.h).
  void Register(absl::Time now, const Message& message, Outbox& outbox);
  void Heartbeat(absl::Time now, const Message& message, Outbox& outbox);
  void WatchView(absl::Time now, const Message& message, Outbox& outbox);
  void CreateTable(absl::Time now, const Message& message, Outbox& outbox);
  void DropTable(absl::Time now, const Message& message, Outbox& outbox);
  void SetContract(absl::Time now, const Message& message, Outbox& outbox);
  void ListTables(absl::Time, const Message& message, Outbox& outbox);
  void Barrier(absl::Time now, const Message& message, Outbox& outbox);
  void Leave(absl::Time now, const Message& message, Outbox& outbox);
  void GetStatus(absl::Time now, const Message& message, Outbox& outbox);
  void Drain(absl::Time now, const Message& message, Outbox& outbox);
  void Scale(absl::Time now, const Message& message, Outbox& outbox);
  void ReportReplicas(absl::Time now, const Message& message, Outbox& outbox);
  void GetWork(absl::Time now, const Message& message, Outbox& outbox);
  // Of the machine `work_`.
  void TakeWorkChange(absl::Time now, const Work::Change& change, std::vector<Work::Answer> answers,
                      Outbox& outbox);
  void TakeDiskAnswer(absl::Time now, const Message& message, Outbox& outbox);
  void TakeConnectionLost(const Message& message, Outbox& outbox);
  void TakeProbeReply(absl::Time now, const Message& message, Outbox& outbox);

  // A node is no longer ALIVE: nobody waits for it.
  void Forget(absl::Time now, NodeId node, Outbox& outbox);

  // Lets chains follow what has been decided in this call. Before a reply takes the view.
  void SettleChains(absl::Time now);
  // Not while a record is being written: nothing could leave before it is, and until then what is
  // reported comes together.
  absl::Time NextSettle() const;
  // Notes a decision; the next record carries it and the state it led to. "" = nothing was decided.
  void Decide(absl::Time now, const std::string& decision);
  // The same for what is no event: only the record has it.
  void Note(const std::string& decision);
  // Sends `reply` when everything decided so far is durable.
  void Answer(Message reply, Outbox& outbox);
  void Refuse(const Message& request, const absl::Status& status, Outbox& outbox);
  void AnswerBarriers(std::vector<Barriers::Answer> answers, Outbox& outbox);
  void AnswerWatch(const Message& request, Outbox& outbox) const;

  // Constant after construction.
  const Config config_;

  // The state as decided, durable or not. The machines edit it.
  proto::LogRecord state_;
  Groups groups_;
  Membership membership_;
  Stragglers stragglers_;
  Tables tables_;
  Chains chains_;
  Fleet fleet_;
  Governor governor_;
  Barriers barriers_;
  Work work_;
  EventTrail trail_;

  // Durability. At most one record is being written.
  bool writing_ = false;
  std::string undurable_decisions_;       // not yet in a record; empty = the log has the state
  proto::ClusterView written_view_;       // of the record being written
  std::vector<Message> written_answers_;  // wait for it
  std::vector<Message> later_answers_;    // wait for the record after it
  proto::ClusterView published_;
  absl::Status disk_failure_;

  Watches watches_;
  absl::Time started_ = absl::InfiniteFuture();
  absl::Time last_call_;
  // Not the last call: messages that come all the time do not put off what only Wake does.
  absl::Time last_tick_ = absl::InfinitePast();
  Epoch epoch_before_;  // when the present call began
  std::function<void(const std::string&)> on_decision_;
};

}  // namespace covey::scheduler
