// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/random.h"
#include "common/cluster/away_worker.h"
#include "common/cluster/backoff.h"
#include "common/cluster/ids.h"
#include "common/cluster/view.h"
#include "common/runtime/actor.h"
#include "common/runtime/trace_reporter.h"
#include "common/trace/trace_source.h"

namespace covey {

// A node's half of membership: registers with the scheduler, sends heartbeats, follows the view.
// Every role's control loop holds one.
//
//   kRegistering ── RegisterReply ──▶ kMember ── Leave(), LeaveReply ──▶ kLeft
//        │  ▲ │                          │
//        │  └─┘ UNAVAILABLE, or its      │ ABORTED (declared dead, or replaced), or
//        │      rank taken: back off     │ its certificate is not accepted any more
//        │ refused, or deadline          ▼
//        └──────────────────────────▶ kFailed
//
// Invariants:
//   1. The view's epoch never goes back.
//   2. At most one registration and one watch are in flight.
//   3. A lease counts from the time at which the newest answered request was sent, however late the
//      answer is and in whatever order answers arrive.
//   4. An unreachable scheduler does not change a member's state; the member keeps retrying.
//
// Actor-confined. Deterministic in its options.
class Member {
 public:
  enum class State { kRegistering, kMember, kLeft, kFailed };

  struct Options {
    std::string job_name;
    proto::Role role = proto::ROLE_UNSPECIFIED;
    // Wanted rank within the role; -1 = any.
    int rank = -1;
    std::string labels;
    // The addresses of the loops; see Node.endpoints.
    std::vector<std::string> endpoints;
    uint64_t process_id = 0;
    std::string host;
    // RegisterRequest.data_key; empty = none.
    std::string data_key;
    // "host:port" of the scheduler, for errors.
    std::string scheduler;
    // After this duration registration fails with the scheduler's last error. Until then a taken
    // rank is asked for again: its holder may have died a moment ago, and a supervisor restarts
    // processes before their death is known.
    absl::Duration register_deadline = absl::Seconds(30);
    // An unanswered request is retried after this duration.
    absl::Duration retry_after = absl::Seconds(2);
    // An unanswered watch is retried after this duration. Longer, because a watch is answered only
    // when the view changes.
    absl::Duration watch_again_after = absl::Seconds(10);
    uint64_t seed = 0;
    // Records what the process does when the scheduler asks for it; null = nothing. Outlives the
    // member.
    TraceSource* trace = nullptr;
  };

  // `next_request_id` is shared with the other state machines of the loop, and outlives the member.
  Member(const Options& options, uint64_t& next_request_id);

  // True when the message was a reply to this machine.
  bool Receive(absl::Time now, const Message& message, Outbox& outbox);
  void Wake(absl::Time now, Outbox& outbox);
  absl::Time NextWake() const;

  // Asks the scheduler to let this node go; state() becomes kLeft when the scheduler has replied,
  // or after retry_after. The scheduler refuses while the node does not know its newest duties:
  // then the member fetches the view, and asks again.
  void Leave(absl::Time now, std::string reason, Outbox& outbox);
  // Withdraws Leave. Too late when the scheduler has received the request: then the member fails.
  void Stay();

  // kMember once the node knows a view, too: the reply to its registration may have none.
  State state() const;
  // Why kFailed. UNAVAILABLE: scheduler unreachable; ALREADY_EXISTS: rank still taken; ABORTED:
  // declared dead; FAILED_PRECONDITION: job is full; INVALID_ARGUMENT: other job's scheduler;
  // UNAUTHENTICATED, PERMISSION_DENIED: the certificate is not valid, or allows something else.
  const absl::Status& failure() const { return failure_; }
  NodeId node() const { return node_; }
  uint32_t rank() const { return rank_; }
  // Never null.
  const std::shared_ptr<const ClusterView>& view() const { return view_; }
  // Lease expiry: until then no other node serves what only this node holds. It is the time at
  // which the newest answered heartbeat was sent, plus the lease term. Infinite future when the
  // scheduler grants leases without end.
  absl::Time lease_until() const { return lease_until_; }

  // Contents of the next heartbeat; a server registers with its load, too.
  proto::Progress& progress() { return progress_; }
  proto::ServerLoad& load() { return load_; }
  // This worker's program is away until then, for this reason of 1 to kNameBytesMax bytes;
  // heartbeats say so until that time, or until SetBack. A second call replaces the first.
  void SetAway(std::string reason, absl::Time until) {
    own_away_ = {.reason = std::move(reason), .until = until};
  }
  void SetBack() { own_away_.reset(); }
  // Of a worker: those that it may have to wait for and that are away, itself included, as the
  // newest answered heartbeat says (HeartbeatReply.away).
  const std::vector<AwayWorker>& away() const { return away_; }
  // Of a worker: the links that it is to measure, as the newest answered heartbeat says
  // (HeartbeatReply.probe); order 0 = none.
  const proto::ProbeOrder& probe_order() const { return probe_order_; }
  // What was measured; heartbeats say it until a reply no longer asks for this order.
  void SetProbes(proto::ProbeReport probes) { probes_ = std::move(probes); }

  // Called inside Receive when the view or the state has changed.
  void OnChange(std::function<void(absl::Time, Outbox&)> callback) {
    on_change_ = std::move(callback);
  }

  // Adopts a view from another source (a reply to a table creation has one), if it is newer than
  // the present one and of the same job.
  void Adopt(absl::Time now, proto::ClusterView view, Outbox& outbox);

 private:
  struct Pending {
    uint64_t request_id = 0;                 // 0 = none in flight
    absl::Time sent = absl::InfinitePast();  // of the first try
    absl::Time again = absl::InfiniteFuture();
  };

  // A heartbeat in flight. Each has content and an id of its own.
  struct Beat {
    uint64_t request_id = 0;
    absl::Time sent;
  };

  // `sent`: when the answered request was sent. False, without effect: a newer request has been
  // answered before.
  bool ExtendLease(absl::Time sent, uint32_t lease_ms);
  void TakeAway(absl::Time now, const proto::HeartbeatReply& reply);
  Message Request(absl::Time now, Pending& pending, absl::Time again) const;
  void SendRegister(absl::Time now, Outbox& outbox);
  // A repetition follows at `again`, before the next heartbeat is due, unless this one is answered
  // by then: otherwise a live member on a network with losses could be silent for long enough to be
  // declared dead.
  void SendHeartbeat(absl::Time now, absl::Time again, Outbox& outbox);
  void ReceiveHeartbeatReply(absl::Time now, const Message& message, Outbox& outbox);
  void SendWatch(absl::Time now, Outbox& outbox);
  // A view, or what has changed since the view that this node holds. After a change that does not
  // fit, the next watch asks for the whole view.
  void TakeNews(absl::Time now, const proto::WatchViewReply& news, Outbox& outbox);
  void SendLeave(absl::Time now, Outbox& outbox);
  void ReceiveRegisterReply(absl::Time now, const Message& message, Outbox& outbox);
  void Fail(absl::Time now, absl::Status status, Outbox& outbox);
  void Changed(absl::Time now, Outbox& outbox);

  const Options options_;
  uint64_t& next_request_id_;
  Backoff backoff_;
  std::function<void(absl::Time, Outbox&)> on_change_;

  State state_ = State::kRegistering;
  absl::Status failure_;
  absl::Status last_refusal_;
  absl::Time register_until_ = absl::InfiniteFuture();
  NodeId node_;
  uint32_t rank_ = 0;
  absl::Duration heartbeat_every_ = absl::Milliseconds(500);
  std::shared_ptr<const ClusterView> view_ = ClusterView::Empty();
  // WatchViewRequest.takes_changes.
  bool takes_changes_ = true;
  proto::Progress progress_;
  proto::ServerLoad load_;
  struct OwnAway {
    std::string reason;
    absl::Time until;
  };
  std::optional<OwnAway> own_away_;
  std::vector<AwayWorker> away_;
  proto::ProbeOrder probe_order_;
  proto::ProbeReport probes_;
  std::string leave_reason_;
  absl::Time leave_until_ = absl::InfiniteFuture();
  absl::Time lease_until_ = absl::InfiniteFuture();
  // When the request whose reply set lease_until_ was sent.
  absl::Time lease_sent_ = absl::InfinitePast();

  Pending register_;
  // Oldest first, at most kUnansweredBeatsMax.
  std::deque<Beat> unanswered_beats_;
  absl::Time next_heartbeat_ = absl::InfiniteFuture();
  absl::Time repeat_heartbeat_ = absl::InfiniteFuture();
  Pending watch_;
  Pending leave_;
  TraceReporter traces_;
};

}  // namespace covey
