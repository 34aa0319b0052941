// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/random.h"
#include "common/cluster/backoff.h"
#include "common/cluster/ids.h"
#include "common/cluster/view.h"
#include "common/runtime/actor.h"

namespace covey {

// A node's half of membership: registers with the scheduler, sends heartbeats, follows the view.
// Every role's control loop holds one.
//
//   kRegistering ── RegisterReply ──▶ kMember ── Leave(), LeaveReply ──▶ kLeft
//        │  ▲ │                          │
//        │  └─┘ UNAVAILABLE, or its      │ ABORTED (declared dead, or replaced)
//        │      rank taken: back off     │
//        │ refused, or deadline          ▼
//        └──────────────────────────▶ kFailed
//
// Invariants:
//   1. The view's epoch never goes back.
//   2. At most one registration and one watch are in flight.
//   3. A lease counts from the time at which the newest answered request was sent, however late the
//      answer is and in whatever order answers arrive.
//   4. A scheduler that is away changes nothing for a member, which goes on asking.
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
    // Where each loop listens; see Node.endpoints.
    std::vector<std::string> endpoints;
    uint64_t process_id = 0;
    std::string host;
    // "host:port" of the scheduler, for errors.
    std::string scheduler;
    // Registration fails with what the scheduler last said when it takes longer.
    absl::Duration register_deadline = absl::Seconds(30);
    // A rank that is taken is asked for again for so long: its holder may have died a moment ago,
    // and whoever supervises processes restarts them before their death is known. Longer than the
    // scheduler takes to notice a silent death.
    absl::Duration taken_rank_patience = absl::Seconds(5);
    // A request without an answer is sent again after so long.
    absl::Duration retry_after = absl::Seconds(2);
    // A watch is answered only when the view changes; an unanswered one is sent again after so
    // long.
    absl::Duration watch_again_after = absl::Seconds(10);
    uint64_t seed = 0;
  };

  // `next_request_id` is shared with the other machines of the loop; it outlives the member.
  Member(const Options& options, uint64_t& next_request_id);

  // True when the message was an answer to this machine.
  bool Receive(absl::Time now, const Message& message, Outbox& outbox);
  void Wake(absl::Time now, Outbox& outbox);
  absl::Time NextWake() const;

  // Says goodbye; state() becomes kLeft when the scheduler has answered, or after retry_after. One
  // who does not know yet what was given to it is told so: it asks for the view, and again.
  void Leave(absl::Time now, std::string reason, Outbox& outbox);
  // Does not go after all. Too late when the scheduler has heard the goodbye: it fails then.
  void Stay();

  State state() const { return state_; }
  // Why kFailed. UNAVAILABLE: scheduler unreachable; ALREADY_EXISTS: rank still taken; ABORTED:
  // declared dead; FAILED_PRECONDITION: job is full; INVALID_ARGUMENT: other job's scheduler.
  const absl::Status& failure() const { return failure_; }
  NodeId node() const { return node_; }
  uint32_t rank() const { return rank_; }
  // Never null.
  const std::shared_ptr<const ClusterView>& view() const { return view_; }
  // Until then no other node answers for what only this node holds: the lease term after this node
  // sent the newest heartbeat that was answered. The infinite future when the scheduler sets no
  // end.
  absl::Time lease_until() const { return lease_until_; }

  // What the next heartbeat reports.
  proto::Progress& progress() { return progress_; }
  proto::ServerLoad& load() { return load_; }

  // Called inside Receive when the view or the state has changed.
  void OnChange(std::function<void(absl::Time, Outbox&)> callback) {
    on_change_ = std::move(callback);
  }

  // Takes a view seen elsewhere (a table creation answers with one) if it is newer than the present
  // one, and of the same job.
  void Adopt(absl::Time now, const proto::ClusterView& view, Outbox& outbox);

 private:
  struct Pending {
    uint64_t request_id = 0;                 // 0 = none under way
    absl::Time sent = absl::InfinitePast();  // first
    absl::Time again = absl::InfiniteFuture();
  };

  // A heartbeat in flight. Each is news of its own, under an id of its own.
  struct Beat {
    uint64_t request_id = 0;
    absl::Time sent;
  };

  // `sent`: when the request was sent that is answered. Nothing happens when a newer one has been
  // answered before.
  void ExtendLease(absl::Time sent, uint32_t lease_ms);
  Message Request(absl::Time now, Pending& pending, absl::Time again) const;
  void SendRegister(absl::Time now, Outbox& outbox);
  // One more follows at `again`, before the next is due, unless this one is answered by then: where
  // messages get lost, a member that lives would otherwise be silent for long enough to be taken
  // for dead.
  void SendHeartbeat(absl::Time now, absl::Time again, Outbox& outbox);
  void ReceiveHeartbeatReply(absl::Time now, const Message& message, Outbox& outbox);
  void SendWatch(absl::Time now, Outbox& outbox);
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
  absl::Time taken_rank_until_ = absl::InfiniteFuture();
  NodeId node_;
  uint32_t rank_ = 0;
  absl::Duration heartbeat_every_ = absl::Milliseconds(500);
  std::shared_ptr<const ClusterView> view_ = ClusterView::Empty();
  proto::Progress progress_;
  proto::ServerLoad load_;
  std::string leave_reason_;
  absl::Time leave_until_ = absl::InfiniteFuture();
  absl::Time lease_until_ = absl::InfiniteFuture();
  // When the request was sent whose answer set lease_until_.
  absl::Time lease_sent_ = absl::InfinitePast();

  Pending register_;
  // Oldest first, at most kUnansweredBeatsMax.
  std::deque<Beat> unanswered_beats_;
  absl::Time next_heartbeat_ = absl::InfiniteFuture();
  absl::Time repeat_heartbeat_ = absl::InfiniteFuture();
  Pending watch_;
  Pending leave_;
};

}  // namespace covey
