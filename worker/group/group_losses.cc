// SPDX-License-Identifier: Apache-2.0

// How a group goes on when messages between its members are lost: the part of GroupMachine that
// looks for losses, and lets the members meet again.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/cluster/retry_policy.h"
#include "common/net/message.h"
#include "worker/group/group_machine.h"

namespace covey::worker {
namespace {

// Members that measure their links come to the meeting up to so much apart.
constexpr absl::Duration kMeasuringPatience = absl::Seconds(5);
constexpr absl::Duration kMeetingPatience = absl::Milliseconds(500);
// How often the patience doubles: some members may not have the view yet.
constexpr uint32_t kDoublingsMax = 2;
constexpr RetryPolicy kMeetingRetry{.doublings_max = kDoublingsMax};

}  // namespace

absl::Duration GroupMachine::Patience() const {
  const bool measures = options_.formation == Formation::kMeasured && attempt_ == 0;
  return kMeetingRetry.DelayAfter(static_cast<int>(std::min(attempt_, kDoublingsMax)),
                                  measures ? kMeasuringPatience : kMeetingPatience);
}

absl::Time GroupMachine::NextQuery() const {
  if (!ready() || runs_.size() == abandoned_) return absl::InfiniteFuture();
  return loss_detector_.NextQuery();
}

void GroupMachine::LookForLosses(absl::Time now, Outbox& outbox) {
  if (now < NextQuery()) return;
  loss_detector_.Asked(now);
  std::set<uint32_t> silent;
  for (const auto& [number, run] : runs_) {
    if (run->abandoned) continue;
    for (const uint32_t rank : run->WaitsFor()) silent.insert(rank);
  }
  for (const uint32_t rank : silent) QueryPeer(rank, outbox);
}

void GroupMachine::QueryPeer(uint32_t rank, Outbox& outbox) {
  Message query = MakeProbe(rank, outbox);
  query.envelope.mutable_group_probe()->mutable_slices_sent_query();
  outbox.Send(std::move(query));
}

void GroupMachine::AnswerSlicesSent(uint32_t rank, Outbox& outbox) {
  Message reply = MakeProbe(rank, outbox);
  reply.envelope.mutable_group_probe()->mutable_slices_sent()->set_slices(
      sender_.sent_to(members_[rank]));
  outbox.Send(std::move(reply));
}

void GroupMachine::ReceiveSlicesSent(uint32_t rank, uint64_t slices) {
  if (!loss_detector_.HasLost(rank, slices)) return;
  RecordLoss(absl::StrCat("slices from ", NameOf(rank), " to ", NameOf(rank_),
                          " were lost with a connection"));
}

bool GroupMachine::FollowAttempt(absl::Time now, const Message& message, const GroupSender& sender,
                                 Outbox& outbox) {
  const uint32_t attempt = sender.round.attempt;
  if (attempt == attempt_) return true;
  const uint32_t rank = *sender.rank;
  if (attempt < attempt_ || attempt > kGroupAttemptsMax || rendezvous_.superseded() ||
      rank == rank_ || !IsMember(message, rank)) {
    return false;
  }
  BeginAttempt(now, attempt,
               absl::StrCat(NameOf(rank), " has noticed that messages were lost or damaged"),
               outbox);
  return failure_.ok() && formed() && round() == sender.round;
}

void GroupMachine::RetryRendezvous(absl::Time now, const std::string& why, Outbox& outbox) {
  if (!failure_.ok() || !formed() || rendezvous_.superseded()) return;
  if (const proto::Node* left = plan_.FirstDepartedMember(); left != nullptr && !change_pending()) {
    Abort(now,
          absl::UnavailableError(absl::StrCat("group ", id_.value(), ": ", why, ", and ",
                                              left->name(),
                                              " has left meanwhile; start the run again")),
          outbox);
    return;
  }
  if (attempt_ == kGroupAttemptsMax) {
    Abort(now,
          absl::UnavailableError(absl::StrCat("group ", id_.value(), ": ", why, ", again and ",
                                              "again; look at the network, then start the run "
                                              "again")),
          outbox);
    return;
  }
  BeginAttempt(now, attempt_ + 1, why, outbox);
}

void GroupMachine::BeginAttempt(absl::Time now, uint32_t attempt, const std::string& why,
                                Outbox& outbox) {
  // There is a newer plan to go over to.
  if (change_pending()) return Recover(now, outbox);
  const proto::Group group = *view().GroupOf(plan_.self());
  ++losses_;
  interruption_ = absl::StrCat("group ", id_.value(), ": ", why);
  const absl::Status status =
      absl::UnavailableError(absl::StrCat(interruption_, "; it goes on, and does its step again",
                                          "; call Group::Refresh, and start the collective again"));
  if (ready()) {
    if (Interrupt(now, status, outbox)) StartRendezvous(now, group, outbox, attempt);
    return;
  }
  // Nothing was under way but the meeting: what waits for it waits on.
  std::vector<Collective> waiting = std::exchange(waiting_, {});
  const uint64_t last_plain = last_plain_;
  std::map<uint32_t, uint64_t> last_started = last_started_;
  // A meeting that is over but for its frames counts no more.
  rendezvous_.Supersede();
  Stop(now, status, outbox);
  StartRendezvous(now, group, outbox, attempt);
  COVEY_CHECK(!ready());  // It takes a hello of another member.
  last_plain_ = last_plain;
  last_started_ = std::move(last_started);
  waiting_ = std::move(waiting);
}

bool GroupMachine::Interrupt(absl::Time now, const absl::Status& status, Outbox& outbox) {
  if (on_interrupted_) finished_step_ = std::max(finished_step_, on_interrupted_(now, outbox));
  if (!failure_.ok()) return false;  // The callback has seen that it cannot go on.
  interrupted_ = true;
  rendezvous_.Supersede();
  Stop(now, status, outbox);
  return failure_.ok();
}

uint32_t GroupMachine::NewestAttempt(const std::deque<Message>& kept) const {
  uint32_t newest = 0;
  for (const Message& message : kept) {
    const std::optional<GroupSender> sender = SenderOf(message);
    if (!sender || !sender->rank || !IsMember(message, *sender->rank)) continue;
    const GroupRound& round = sender->round;
    if (round.group != id_ || round.generation != generation_) continue;
    if (round.attempt <= kGroupAttemptsMax) newest = std::max(newest, round.attempt);
  }
  return newest;
}

}  // namespace covey::worker
