// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "client/engine/client_actor.h"
#include "common/runtime/actor.h"
#include "worker/engine/peer_prober.h"
#include "worker/group/communicator.h"
#include "worker/hybrid/hybrid_step_engine.h"
#include "worker/hybrid/progress_meter.h"

namespace covey::worker {

// The loop of a worker: the client's parts plus a group's collectives and hybrid steps, and probes
// of links to any workers. Dispatches only.
//
// Actor-confined. Deterministic in its options.
class WorkerActor : public Actor {
 public:
  explicit WorkerActor(const client::ClientActor::Options& options,
                       const Communicator::Options& group = Communicator::Options());

  void Receive(absl::Time now, const Message& message, Outbox& outbox) override;
  void Wake(absl::Time now, Outbox& outbox) override;
  absl::Time NextWake() const override;

  client::ClientActor& client() { return client_; }
  Communicator& group() { return group_; }
  HybridStepEngine& hybrid() { return hybrid_; }
  ProgressMeter& meter() { return meter_; }
  // Messages in the name of a node, sent by another process; they were dropped (sender.h).
  uint64_t impostors() const { return impostors_; }

  // The program is silent on purpose, for this reason and until then at most: the next heartbeat
  // tells the scheduler. A second call replaces the first.
  void SetAway(std::string reason, absl::Time until) {
    if (!is_left_out_) client_.member().SetAway(std::move(reason), until);
    hybrid_.SetAwayUntil(until);
  }
  // The program is back before that time.
  void SetBack(absl::Time now) {
    if (!is_left_out_) client_.member().SetBack();
    hybrid_.SetAwayUntil(now);
  }
  bool is_away(absl::Time now) const { return hybrid_.is_away(now); }

  // The program has asked for its part of a group's samples: heartbeats say so.
  void NoteFollowsShares() { client_.member().progress().set_follows_shares(true); }

  // Records a finished step: the next heartbeat reports it to the scheduler.
  void ReportStep(absl::Time now, const StepReport& step);

  // Counts live workers that are or were in a group. Unplaced late arrivals and draining workers do
  // not count.
  uint32_t WorkersToMeet();
  // Starts a barrier of all workers. `met` is called once: with OK, with DEADLINE_EXCEEDED, which
  // names the missing workers, or with UNAVAILABLE as soon as one of them dies, because then they
  // cannot all arrive. One barrier at a time.
  using Met = std::function<void(const absl::Status&)>;
  void Meet(absl::Time now, proto::Envelope barrier, absl::Time deadline, Met met, Outbox& outbox);

  // Calls `callback` once, while the group is ready: now, or when its rendezvous is complete. A
  // status other than OK says why that will never be; CANCELLED: the worker was asked to leave
  // before it was in a group. A group that was ready may have lost a member since, and has to
  // re-form. One callback at a time; an empty one withdraws the previous one.
  void WhenReady(std::function<void(const absl::Status&)> callback) {
    when_ready_ = std::move(callback);
    TellReady();
  }

 private:
  // To be called before each heartbeat.
  void NoteLeftOut();
  void MembershipChanged(absl::Time now, Outbox& outbox);
  // Takes in which workers are away, and which links are to be measured.
  void HeartbeatAnswered(absl::Time now, Outbox& outbox);
  // What has been measured goes with the next heartbeats.
  void ReportProbes();
  void TellReady();
  void EndMeeting(const absl::Status& status);
  // Fails the pending barrier when a worker has died since it began.
  void CheckMeeting();

  client::ClientActor client_;
  Communicator group_;
  HybridStepEngine hybrid_;
  ProgressMeter meter_;
  PeerProber prober_;
  uint64_t impostors_ = 0;
  // It was in a group, and the plan has no place for it any more. Its program has been told so with
  // an error, and takes no steps after it: heartbeats say so for good, so that no group waits for
  // it again.
  bool is_left_out_ = false;
  bool was_in_group_ = false;
  std::function<void(const absl::Status&)> when_ready_;
  Met met_;                 // of the pending barrier; empty = none
  std::set<NodeId> alive_;  // the workers when it began
};

}  // namespace covey::worker
