// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/cluster/link_costs.h"
#include "common/cluster/topology.h"
#include "common/net/message.h"
#include "worker/group/distance_prober.h"
#include "worker/group/group_round.h"
#include "worker/group/hello_exchange.h"
#include "worker/group/link_prober.h"
#include "worker/group/member_hello.h"
#include "worker/group/member_progress.h"

namespace covey::worker {

// How the members of one round of a group meet: they measure, tell each other what they have
// measured and how far they have come, and so know the same.
//
//                                   labels name no racks
//   kNone ── Begin ─▶ kListening ── Start ─▶ kRanging ─▶ kSharingDistances
//                         │                                      │
//                         │ Start                                │ racks found, or none
//                         ├───────────────────▶ kMeasuring ◀─────┘
//                         │                         │ links measured, or nothing to measure
//                         │ MeetAtOnce              ▼
//                         │                   kSharingStates
//                         │                         │ all have said hello
//                         └──────────▶ kReady ◀─────┘
//
//   any but kNone ── Supersede ─▶ kSuperseded
//   any ── Begin ─▶ kListening      any ── End ─▶ kNone
//
// Invariants:
//   1. Whatever members that are ahead say is heard in every state from kListening to
//      kSharingStates, and counts when this member has come so far.
//   2. In kReady all members that are ready know the same step, costs, places and progress.
//   3. Nothing is sent twice. When a message is lost, the round does not become ready: at
//      retry_at() the owner begins another one.
//
// What was learned of links and places in a round is kept for the next one, which may have no time
// to measure. Actor-confined. Deterministic.
class Rendezvous {
 public:
  enum class State {
    kNone,
    kListening,
    kRanging,
    kSharingDistances,
    kMeasuring,
    kSharingStates,
    kReady,
    kSuperseded,  // the members of this generation will never meet
  };
  // Whether a state may follow another one, as drawn above.
  static bool IsLegal(State from, State to);

  struct Setup {
    GroupRound round;
    uint32_t rank = 0;
    std::vector<NodeId> members;      // by rank
    std::vector<TopologyPath> paths;  // what their labels say
    bool measures = false;
    size_t slice_bytes = 0;
    // After this time in one exchange, messages are taken for lost.
    absl::Duration patience;
    // The newest step that was over when the group was made.
    Step first_agreed;
    // Of this member.
    Step finished;
    bool interrupted = false;
    MemberProgress progress;
  };
  void Begin(Setup setup);
  void Start(absl::Time now);
  // Without a message. For tests.
  void MeetAtOnce() { Enter(State::kReady); }
  void Supersede();
  void End();

  // A probe of another member that measures; it may be one to be sent back.
  void Receive(absl::Time now, uint32_t from, const proto::GroupProbe& probe);
  // As ReadHellos. Without effect when the round is ready or superseded.
  absl::Status ReceiveHello(absl::Time now, const Message& message);
  void Wake(absl::Time now);
  // Of what is measured.
  absl::Time NextWake() const;

  struct Outgoing {
    uint32_t peer = 0;
    Message message;  // the receiver is for the caller to fill in
  };
  // What is to be sent since the last call, in order.
  std::vector<Outgoing> TakeOutgoing() { return std::exchange(outgoing_, {}); }

  State state() const { return state_; }
  bool ready() const { return state_ == State::kReady; }
  bool superseded() const { return state_ == State::kSuperseded; }
  // The members tell each other something, and this one waits for the rest.
  bool exchanging() const {
    return state_ == State::kSharingDistances || state_ == State::kSharingStates;
  }
  // Of the exchange: when to begin another round, when to give up, and which members are missing.
  absl::Time retry_at() const { return retry_at_; }
  absl::Time deadline() const { return deadline_; }
  void BoundDeadline(absl::Time latest) {
    if (exchanging()) deadline_ = std::min(deadline_, latest);
  }
  std::vector<uint32_t> Missing() const { return exchange().Missing(); }

  // Members, and what is known of them; of links and places once ready.
  const std::vector<TopologyPath>& paths() const { return setup_.paths; }
  size_t measured_racks() const { return measured_racks_; }
  const LinkCosts& costs() const { return costs_; }
  // The highest step that any member has finished, first_agreed at the least.
  Step agreed_step() const { return agreed_step_; }
  // When some member was interrupted: how far each has come, by rank. Else empty.
  const std::vector<MemberProgress>& recovery_state() const { return recovery_state_; }

 private:
  void Enter(State state);
  HelloExchange& exchange() { return state_ == State::kSharingDistances ? distances_ : states_; }
  const HelloExchange& exchange() const {
    return state_ == State::kSharingDistances ? distances_ : states_;
  }
  // Sends what there is to say, and goes on as far as what is known allows.
  void Advance(absl::Time now);
  proto::GroupProbe& AddProbe(uint32_t peer, size_t bytes);
  void BeginExchange(absl::Time now, State state, MemberHello hello);
  void SendHellos();
  void FindRacks();
  uint64_t KnownPlaces() const;
  MemberState OwnState() const;
  void TakeStates();
  void TakeProgress();

  State state_ = State::kNone;
  Setup setup_;
  DistanceProber distance_prober_;
  LinkProber link_prober_;
  HelloExchange distances_;
  HelloExchange states_;
  absl::Time retry_at_ = absl::InfiniteFuture();
  absl::Time deadline_ = absl::InfiniteFuture();
  std::vector<Outgoing> outgoing_;

  // What the round comes to.
  size_t measured_racks_ = 0;
  LinkCosts costs_;
  Step agreed_step_;
  std::vector<MemberProgress> recovery_state_;

  // Of earlier rounds too.
  std::vector<LinkSample> own_samples_;            // what this member has measured last
  std::map<NodeId, TopologyPath> measured_paths_;  // of the members that measured racks together
};

}  // namespace covey::worker
