// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>

#include "absl/time/time.h"
#include "common/base/transitions.h"
#include "common/net/message.h"
#include "common/runtime/actor.h"
#include "common/runtime/member.h"

namespace covey::server {

// How a server leaves the job. It asks to be drained, serves on while its shards move to other
// servers, and says goodbye when the view has it in no chain any more:
//
//               Begin              consent
//     kServing ───────▶ kAsking ─────────────▶ kDraining
//       │ │ ▲             │ │ ▲                  │ │
//       │ │ │ it is to    │ │ │ it is to stay,   │ │
//       │ │ │ stay        │ │ │ and Begin was    │ │
//       │ │ │             │ │ │ called           │ │
//       │ └─┼─────────────┼─┴─┼──────────────────┼─┴──▶ kDrained: draining, and in no chain
//       │   └─────────────┼───┴──────────────────┼────────┘
//       │                 │                      │
//       │                 └──────────────────────┴────▶ kStopping: refused; no reply; deadline;
//       │ it is no member                                   │      the job is closed
//       └───────────────────────────────────────────────────┴────▶ kLeft
//
// In kStopping the server ends its lease: its data loops serve no more what no other server holds.
// It says goodbye when all of them have confirmed that, so another server may take over at once.
//
// When no other server stays, the scheduler closes the job: it makes a snapshot, and the servers
// leave when that is complete. Without a store it refuses.
//
// Another server or a person may drain it, too: then it goes from kServing to kDrained. A view that
// has the server in a chain again, or draining no longer, before the scheduler has heard the
// goodbye, ends kDrained: the server serves on, and asks again if Begin was called.
//
// Invariants: 1. The server has said goodbye exactly in kDrained and kLeft. 2. In kLeft its content
// is lost, which is the only copy where a table has no other replica and the job was not closed; in
// kDrained it holds none.
//
// Actor-confined. Deterministic.
class ServerDrain {
 public:
  enum class State {
    kServing,
    kAsking,    // has asked the scheduler to be drained
    kDraining,  // the scheduler has consented
    kDrained,   // has said goodbye because it holds no shard any more
    kStopping,  // has ended its lease
    kLeft       // has said goodbye for another reason
  };

  // `data_loops`: their number. `member` and `next_request_id` outlive it.
  ServerDrain(Member& member, uint64_t& next_request_id, uint32_t data_loops)
      : member_(member), next_request_id_(next_request_id), data_loops_(data_loops) {}

  // The server stops at `deadline` at the latest. `reason`: for people, "signal 15".
  void Begin(absl::Time now, std::string reason, absl::Time deadline, Outbox& outbox);
  // True when the message was a reply to this class, from the scheduler or a data loop.
  bool Receive(absl::Time now, const Message& message, Outbox& outbox);
  // The member's view has changed.
  void FollowView(absl::Time now, Outbox& outbox);
  void Wake(absl::Time now, Outbox& outbox);
  absl::Time NextWake() const;

  State state() const { return state_; }
  // The data loops get no lease any more, whatever the scheduler answers.
  bool has_ended_lease() const { return state_ == State::kStopping || state_ == State::kLeft; }
  // The picture above as a table.
  static std::span<const Transition<State>> Transitions();

 private:
  void Enter(State next);
  void Ask(absl::Time now, Outbox& outbox);
  // No other server stays: leaves when the job's state is in a snapshot.
  void FollowClosing(absl::Time now, const proto::ClusterView& view, Outbox& outbox);
  // Leaves although shards are here.
  void GiveUp(absl::Time now, const std::string& why, Outbox& outbox);
  void Stop(absl::Time now, Outbox& outbox);
  // Tells the data loops that have not confirmed it that the lease is over.
  void EndLease(absl::Time now, Outbox& outbox);
  void OnLoopStopped(absl::Time now, const Message& confirmation, Outbox& outbox);
  void Leave(absl::Time now, State last, const std::string& reason, Outbox& outbox);
  bool is_leaving() const { return state_ == State::kAsking || state_ == State::kDraining; }
  bool has_said_goodbye() const { return state_ == State::kDrained || state_ == State::kLeft; }

  Member& member_;
  uint64_t& next_request_id_;
  const uint32_t data_loops_;
  State state_ = State::kServing;
  std::string reason_;  // empty: Begin was not called
  uint64_t request_id_ = 0;
  absl::Time deadline_ = absl::InfiniteFuture();
  // Gives up when the scheduler has not replied by then.
  absl::Time unheard_until_ = absl::InfiniteFuture();
  absl::Time again_ = absl::InfiniteFuture();
  // From kStopping on.
  absl::Time lease_end_;
  std::set<uint32_t> not_stopped_;  // data loops that have not confirmed it
};

}  // namespace covey::server
