#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/net/message.h"
#include "common/runtime/actor.h"
#include "proto/log.pb.h"
#include "scheduler/barrier.h"
#include "scheduler/config.h"
#include "scheduler/event_trail.h"
#include "scheduler/membership.h"
#include "scheduler/tables.h"

namespace covey::scheduler {

// Who is in the cluster and who owns what: the only actor that raises epochs. Dispatches requests
// to its machines (Membership, Tables, Barriers), which edit one state; makes each edit durable;
// then answers.
//
//   request ──▶ machine edits state_ ──▶ DiskAppend ──▶ DiskDurable ──▶ publish view, send answers
//                                         (one at a time; what is decided meanwhile goes into the
//                                         next)
//
// Invariants:
//  1. An answer or a view leaves only when every decision made before it is durable. (Good
//  heartbeats are
//     answered at once, with the published epoch.)
//  2. The epoch of published views never goes back, over restarts too.
//  3. Whatever arrives, an answer goes out or waits until its deadline; requests of nodes that are
//  dead, gone,
//     or unknown get ABORTED.
//
// Sends DiskAppend to {self, kDiskLoop} and expects DiskDurable back. Actor-confined,
// deterministic.
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

 private:
  struct Watch {
    Message request;
    absl::Time until;
  };

  void Enter(absl::Time now);
  void Leave(absl::Time now, Outbox& outbox);
  void Dispatch(absl::Time now, const Message& message, Outbox& outbox);

  void Register(absl::Time now, const Message& message, Outbox& outbox);
  void Heartbeat(absl::Time now, const Message& message, Outbox& outbox);
  void WatchView(absl::Time now, const Message& message, Outbox& outbox);
  void CreateTable(absl::Time now, const Message& message, Outbox& outbox);
  void DropTable(absl::Time now, const Message& message, Outbox& outbox);
  void ListTables(const Message& message, Outbox& outbox);
  void Barrier(absl::Time now, const Message& message, Outbox& outbox);
  void LeaveJob(absl::Time now, const Message& message, Outbox& outbox);
  void GetStatus(absl::Time now, const Message& message, Outbox& outbox);
  void DiskAnswer(const Message& message, Outbox& outbox);

  // Notes a decision; the next record carries it and the state it led to.
  void Decide(absl::Time now, std::string decision);
  // Sends `reply` when everything decided so far is durable.
  void Answer(Message reply, Outbox& outbox);
  void Refuse(const Message& request, const absl::Status& status, Outbox& outbox);
  void AnswerBarriers(absl::Time now, Outbox& outbox);
  void AnswerWatches(absl::Time now, Outbox& outbox);

  // Constant after construction.
  const Config config_;
  const bool restarted_;

  // The state as decided, durable or not. The machines edit it.
  proto::LogRecord state_;
  Membership membership_;
  Tables tables_;
  Barriers barriers_;
  EventTrail trail_;

  // Durability. At most one record is being written.
  bool writing_ = false;
  std::string undurable_decisions_;       // not yet in a record; empty = the state is in the log
  proto::ClusterView written_view_;       // of the record being written
  std::vector<Message> written_answers_;  // wait for it
  std::vector<Message> later_answers_;    // wait for the record after it
  proto::ClusterView published_;
  absl::Status disk_failure_;

  std::vector<Watch> watches_;
  std::optional<absl::Time> started_;
  absl::Time last_call_;
};

}  // namespace covey::scheduler
