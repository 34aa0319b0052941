// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/cluster/limits.h"
#include "common/cluster/link_costs.h"
#include "common/cluster/topology.h"
#include "common/collective/algorithm.h"
#include "common/collective/collective_kind.h"
#include "common/collective/plan.h"
#include "common/net/message.h"
#include "common/runtime/actor.h"
#include "worker/collective/collective.h"
#include "worker/collective/collective_run.h"
#include "worker/collective/early_slices.h"
#include "worker/collective/loss_detector.h"
#include "worker/collective/plan_cache.h"
#include "worker/collective/run_table.h"
#include "worker/collective/slice_sender.h"

namespace covey::worker {

// The collectives of one member of a group: begins them, takes slices of the other members in,
// sends slices out, and runs the callbacks. Members are ranks here; names, addresses and plans of
// the group are the host's.
//
//                BeginRound             MembersMet
//   kIdle ───────────────────▶ kWaiting ───────────▶ kRunning
//                               ▲    ▲                  │  │
//                               │    └─ Stop, BeginRound┘  │ Fail (from each state)
//                               └ BeginRound               ▼
//                                                       kFailed
//
// Invariants:
//   1. A collective that is started in kWaiting begins when the members have met.
//   2. `done` of each collective is called once, and only when the transport holds none of its
//      frames.
//   3. Memory: kGroupEarlyBytesMax and kGroupEarlySlicesMax for slices that come before their turn.
//      Beyond them the group is aborted with RESOURCE_EXHAUSTED.
//
// Actor-confined. Deterministic.
class CollectiveEngine {
 public:
  // The group that the collectives run in.
  class Host {
   public:
    virtual ~Host() = default;
    virtual std::string NameOf(uint32_t rank) const = 0;
    // A member of this round or of an earlier one.
    virtual std::string NameOf(NodeId node) const = 0;
    // "nothing from worker-1 and worker-2, which has left".
    virtual std::string NothingFrom(std::vector<uint32_t> ranks) const = 0;
    // Fills in the receiver of a slice and its round, and lets the transport know the way.
    virtual void SetReceiver(uint32_t rank, Message& slice, Outbox& outbox) = 0;
    // The epoch of the view that has another plan for the group; 0 = none.
    virtual uint64_t NewerPlanEpoch() const = 0;
    // Slices are missing that will not come: the members are to meet again, but not before the
    // caller returns.
    virtual void RecordLoss(std::string why) = 0;
    // No member can go on. Calls Fail.
    virtual void Abort(absl::Time now, const absl::Status& status, Outbox& outbox) = 0;
  };
  struct Options {
    // A multiple of kElementBytesMax, the same on all members.
    size_t slice_bytes = kSliceBytesMax;
    Algorithm algorithm = Algorithm::kAutomatic;
  };
  // `host` outlives it.
  CollectiveEngine(const Options& options, Host& host);

  void SetAlgorithm(Algorithm algorithm) { plans_.SetAlgorithm(algorithm); }

  struct Membership {
    GroupId group;
    uint32_t rank = 0;
    // What this member knows of the others: where they are, by rank, and what links cost.
    std::vector<TopologyPath> paths;
    LinkCosts costs;
  };
  // The members are about to meet. Precondition: collectives of the round before have ended.
  void BeginRound(Membership membership);
  // The members have met, and all of them know the same now.
  void MembersMet(const std::vector<TopologyPath>& paths, const LinkCosts& costs);
  // The plan of a collective of this many encoded bytes that asks for this algorithm; the same on
  // all members once they have met.
  std::shared_ptr<const Plan> PlanFor(CollectiveKind kind, size_t bytes, Algorithm asked) {
    return plans_.PlanFor(kind, bytes, asked);
  }
  // Begins what waited for the members to meet.
  void BeginWaiting(absl::Time now, Outbox& outbox);
  // Ends what waits for the members to meet, with UNAVAILABLE and this reason.
  void EndWaiting(absl::Time now, absl::string_view why, Outbox& outbox);
  // What waits for the members to meet, taken out so that another attempt to meet leaves it alone.
  struct Waiting {
    std::vector<Collective> collectives;
    uint64_t last_plain = 0;
    std::map<uint32_t, uint64_t> last_started;  // by stream
  };
  Waiting TakeWaiting() {
    return {.collectives = std::exchange(started_.collectives, {}),
            .last_plain = started_.last_plain,
            .last_started = started_.last_started};
  }
  void Restore(absl::Time now, Waiting waiting, Outbox& outbox);
  // Ends all collectives of this round: those that have not arrived with `status`.
  void Stop(absl::Time now, const absl::Status& status, Outbox& outbox);
  // Ends all collectives, present and future, with `status`.
  void Fail(absl::Time now, const absl::Status& status, Outbox& outbox);
  const absl::Status& failure() const { return runs_.failure(); }

  // As those of Communicator. Preconditions: a round has begun, `collective` fits it.
  CollectiveId NextPlain() { return {.stream = 0, .sequence = ++started_.last_plain}; }
  void Start(absl::Time now, Collective collective, Outbox& outbox);
  void Contribute(absl::Time now, const CollectiveId& id, const Contribution* contribution,
                  Outbox& outbox);

  // A slice of another member of this round. Advance is for the caller to call.
  void Receive(absl::Time now, const Message& slice, Outbox& outbox);
  // After every change: sends what may be sent, notices released frames, runs callbacks.
  void Advance(absl::Time now, Outbox& outbox);
  // When to look again whether the transport has let frames go: once at the end of the pass that
  // has sent them, because most transports have copied them by then, and from time to time.
  absl::Time look_again() const { return look_again_; }
  // look_again has come.
  void Wake(absl::Time now, Outbox& outbox);

  absl::Time deadline() const;
  // The first collective whose deadline has passed: whom or what it waits for.
  std::optional<absl::Status> Overdue(absl::Time now) const;
  void BoundDeadlines(absl::Time latest);

  // The members that are to be asked how many slices they have sent; empty before NextQuery.
  std::set<uint32_t> TakeQueries(absl::Time now);
  absl::Time NextQuery() const;
  // The answer of a member; and what this member answers.
  void ReceiveSlicesSent(uint32_t rank, uint64_t slices);
  uint64_t SlicesSentTo(NodeId member) const { return sender_.sent_to(member); }

  // Members whose connections hold frames.
  std::vector<NodeId> peers_in_flight() const { return sender_.peers_in_flight(); }
  // Not done yet.
  size_t collectives() const { return runs_.size() + started_.collectives.size(); }
  // For PlantedBug::kPartialSumAsSuccess only.
  void TellPartialSums(absl::Time now, Outbox& outbox) { runs_.TellPartialSums(now, outbox); }

 private:
  enum class State { kIdle, kWaiting, kRunning, kFailed };

  void Begin(absl::Time now, Collective collective, Outbox& outbox);
  void Apply(absl::Time now, CollectiveRun& run, const Message& slice, Outbox& outbox);
  void EndStarted(absl::Time now, const absl::Status& status, Outbox& outbox);
  void QueueOutgoing(CollectiveRun& run, Outbox& outbox);
  absl::Status Misfit(const CollectiveRun& run, const proto::GroupSlice& slice,
                      const absl::Status& why) const;
  absl::Status TooFarAhead(uint32_t rank) const;
  absl::Status DeadlineStatus(const CollectiveRun& run) const;
  std::string Describe(const Collective& collective) const;

  const size_t slice_bytes_;
  Host& host_;

  State state_ = State::kIdle;
  GroupId group_;
  uint32_t rank_ = 0;
  uint32_t size_ = 0;
  PlanCache plans_;
  Waiting started_;  // in this round; its collectives wait for the members to meet
  RunTable runs_;
  EarlySlices early_;
  SliceSender sender_;
  absl::Time look_again_ = absl::InfiniteFuture();
  LossDetector loss_detector_;
};

}  // namespace covey::worker
