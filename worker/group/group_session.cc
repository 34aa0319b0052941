// SPDX-License-Identifier: Apache-2.0
#include "worker/group/group_session.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/transitions.h"
#include "common/cluster/retry_policy.h"
#include "worker/group/group_messages.h"

namespace covey::worker {
namespace {

using State = GroupSession::State;

constexpr Transition<State> kLegal[] = {
    {State::kWithoutGroup, State::kMeeting},
    {State::kMeeting, State::kReady},
    {State::kMeeting, State::kStopped},
    {State::kReady, State::kStopped},
    // Members change over together, after the same step.
    {State::kReady, State::kMeeting},
    {State::kReady, State::kWithoutGroup},
    // The members have a newer plan before they have met.
    {State::kMeeting, State::kMeeting},
    {State::kMeeting, State::kWithoutGroup},
    {State::kStopped, State::kMeeting},
    {State::kStopped, State::kWithoutGroup},
};

// A generation that follows another one has this long to become ready.
constexpr absl::Duration kRendezvousMax = absl::Seconds(60);
// How far apart members come to the meeting, with and without measuring their links first.
constexpr absl::Duration kMeasuringPatience = absl::Seconds(5);
constexpr absl::Duration kMeetingPatience = absl::Milliseconds(500);
// The patience doubles: some members may not have the view yet.
constexpr RetryPolicy kMeetingRetry{.doublings_max = 2};

}  // namespace

bool GroupSession::IsLegal(State from, State to) {
  if (to == State::kFailed) return from != State::kFailed;
  return IsLegalTransition(kLegal, from, to);
}

GroupSession::GroupSession(const Options& options, const PlanFollower& plan)
    : options_(options),
      plan_(plan),
      members_(plan, options.patience_after_away),
      engine_({.slice_bytes = options.slice_bytes, .algorithm = options.algorithm}, *this) {}

void GroupSession::Enter(State to) {
  COVEY_CHECK(IsLegal(state_, to));
  state_ = to;
}

std::deque<Message> GroupSession::Begin(absl::Time now, const proto::Group& group, uint32_t attempt,
                                        Outbox& outbox) {
  Enter(State::kMeeting);
  members_.Set({group.members().begin(), group.members().end()});
  round_ = {.group = GroupId(group.id()), .generation = group.generation(), .attempt = attempt};
  std::deque<Message> kept = kept_.Take({});
  round_.attempt = std::max(attempt, members_.NewestAttempt(kept, round_));
  loss_.clear();
  if (has_been_ready_) meet_by_ = std::min(meet_by_, now + kRendezvousMax);
  steps_before_ = std::max<uint64_t>(group.first_step(), 1) - 1;
  // What the members know of their links from before will do, when time is short.
  const bool recovers = group.recovery_generation() == round_.generation || round_.attempt > 0;
  rendezvous_.Begin({.round = round_,
                     .rank = members_.rank(),
                     .members = members_.nodes(),
                     .paths = members_.LabeledPaths(),
                     .measures = options_.rendezvous == RendezvousMode::kMeasured && !recovers,
                     .slice_bytes = options_.slice_bytes,
                     .patience = Patience(),
                     .first_agreed = Step(steps_before_),
                     .finished = finished_,
                     .interrupted = interrupted_,
                     .progress = callbacks_.progress ? callbacks_.progress() : MemberProgress()});
  engine_.BeginRound({.group = round_.group,
                      .rank = members_.rank(),
                      .paths = rendezvous_.paths(),
                      .costs = rendezvous_.costs()});
  engine_.EndWaiting(now, "the group has other members now; start it again", outbox);
  if (meets_at_once() && !interrupted_ && !failed()) {
    rendezvous_.MeetAtOnce();
    MembersMet();
  }
  return kept;
}

void GroupSession::Meet(absl::Time now, Outbox& outbox) {
  if (meets_at_once() && ready()) return TellReady(now, outbox);
  if (rendezvous_.state() == Rendezvous::State::kListening && !failed()) {
    rendezvous_.Start(now);
    FollowRendezvous(now, outbox);
  }
  engine_.Advance(now, outbox);
}

absl::Duration GroupSession::Patience() const {
  const bool measures = options_.rendezvous == RendezvousMode::kMeasured && round_.attempt == 0;
  return kMeetingRetry.DelayAfter(static_cast<int>(round_.attempt),
                                  measures ? kMeasuringPatience : kMeetingPatience);
}

// Sends what the rendezvous has to say, and looks whether it is over.
void GroupSession::FollowRendezvous(absl::Time now, Outbox& outbox) {
  for (Rendezvous::Outgoing& next : rendezvous_.TakeOutgoing()) {
    members_.SetReceiver(next.peer, next.message, outbox);
    outbox.Send(std::move(next.message));
  }
  if (state_ != State::kMeeting) return;
  if (rendezvous_.ready()) {
    MembersMet();
    TellReady(now, outbox);
    engine_.BeginWaiting(now, outbox);
    engine_.Advance(now, outbox);
  }
}

void GroupSession::MembersMet() {
  Enter(State::kReady);
  engine_.MembersMet(rendezvous_.paths(), rendezvous_.costs());
}

void GroupSession::TellReady(absl::Time now, Outbox& outbox) {
  has_been_ready_ = true;
  interrupted_ = false;
  meet_by_ = absl::InfiniteFuture();
  if (callbacks_.ready) callbacks_.ready(now, outbox);
}

bool GroupSession::Interrupt(absl::Time now, const absl::Status& status, Outbox& outbox) {
  if (callbacks_.interrupted) {
    finished_ = std::max(finished_, Step(callbacks_.interrupted(now, outbox)));
  }
  if (failed()) return false;  // The callback has seen that it cannot go on.
  interrupted_ = true;
  Stop(now, status, outbox);
  return !failed();
}

void GroupSession::Stop(absl::Time now, const absl::Status& status, Outbox& outbox) {
  if (state_ != State::kStopped) Enter(State::kStopped);
  rendezvous_.Supersede();
  for (const NodeId node : engine_.peers_in_flight()) members_.Disconnect(node, outbox);
  engine_.Stop(now, status, outbox);
}

void GroupSession::Supersede(Outbox& outbox) {
  Enter(State::kStopped);
  rendezvous_.Supersede();
  members_.TellEnd(round_, RoundEnd::kSuperseded, "the group has a newer plan", outbox);
}

void GroupSession::End() {
  Enter(State::kWithoutGroup);
  members_.Clear();
  rendezvous_.End();
  engine_.BeginRound({.group = round_.group});
  interrupted_ = false;
  meet_by_ = absl::InfiniteFuture();
}

void GroupSession::Abort(absl::Time now, const absl::Status& status, Outbox& outbox) {
  if (state_ == State::kWithoutGroup || failed()) return;
  Fail(now, status, outbox);
  members_.TellEnd(round_, RoundEnd::kFailed, status.message().substr(0, kStatusMessageBytesMax),
                   outbox);
}

void GroupSession::Fail(absl::Time now, const absl::Status& status, Outbox& outbox) {
  if (failed()) return;
  Enter(State::kFailed);
  kept_.Clear();
  // With the connection go the frames that wait in it for a peer that may never take them.
  for (const NodeId node : engine_.peers_in_flight()) members_.Disconnect(node, outbox);
  engine_.Fail(now, status, outbox);
}

void GroupSession::KeepForLater(const Message& message, bool is_from_stranger) {
  if (kept_.HasRoom(message, 0, is_from_stranger ? kStrangersShare : 1)) kept_.Keep({}, message);
}

void GroupSession::Receive(absl::Time now, const Message& message, Outbox& outbox) {
  const std::optional<GroupSender> sender = SenderOf(message);
  const uint32_t rank = sender->rank.value();
  if (rank == members_.rank() || !members_.IsFrom(message, rank)) return;
  if (message.envelope.has_group_slice()) {
    engine_.Receive(now, message, outbox);
  } else if (message.envelope.has_group_hello()) {
    ReceiveHello(now, message, outbox);
  } else {
    ReceiveProbe(now, message, outbox);
  }
}

void GroupSession::ReceiveProbe(absl::Time now, const Message& message, Outbox& outbox) {
  const proto::GroupProbe& probe = message.envelope.group_probe();
  const uint32_t from = probe.from_rank();
  if (probe.has_slices_sent_query()) {
    Message reply = MakeProbe(round_, members_.rank());
    reply.envelope.mutable_group_probe()->mutable_slices_sent()->set_slices(
        engine_.SlicesSentTo(members_.nodes()[from]));
    SendProbe(from, std::move(reply), outbox);
  } else if (probe.has_slices_sent()) {
    engine_.ReceiveSlicesSent(from, probe.slices_sent().slices());
  } else {
    rendezvous_.Receive(now, from, probe);
    FollowRendezvous(now, outbox);
  }
}

void GroupSession::ReceiveHello(absl::Time now, const Message& message, Outbox& outbox) {
  if (ready()) return;
  const std::string from = members_.NameOf(message.envelope.group_hello().from_rank());
  const absl::Status heard = rendezvous_.ReceiveHello(now, message);
  if (absl::IsDataLoss(heard)) {
    return RecordLoss(absl::StrCat("what ", from, " said to ", members_.NameOf(members_.rank()),
                                   " was damaged: ", heard.message()));
  }
  if (!heard.ok()) {
    return Abort(now,
                 absl::InvalidArgumentError(
                     absl::StrCat("group ", round_.group.value(), ": ", from, " sent ",
                                  heard.message(), "; all members must run the same version")),
                 outbox);
  }
  FollowRendezvous(now, outbox);
}

void GroupSession::SendProbe(uint32_t peer, Message probe, Outbox& outbox) {
  members_.SetReceiver(peer, probe, outbox);
  outbox.Send(std::move(probe));
}

void GroupSession::SetReceiver(uint32_t rank, Message& slice, Outbox& outbox) {
  members_.SetReceiver(rank, slice, outbox);
  WriteRound(round_, *slice.envelope.mutable_group_slice()->mutable_round());
}

void GroupSession::BoundDeadlines(absl::Time latest) {
  engine_.BoundDeadlines(latest);
  rendezvous_.BoundDeadline(latest);
}

std::optional<absl::Status> GroupSession::Overdue(absl::Time now) const {
  if (now >= members_.DeadlineFloor()) {
    if (std::optional<absl::Status> status = engine_.Overdue(now)) return status;
  }
  const std::string generation =
      absl::StrCat("generation ", round_.generation, " of group ", round_.group.value(), ": ");
  if (now >= rendezvous_.deadline()) {
    return absl::DeadlineExceededError(
        absl::StrCat(generation, members_.NothingFrom(rendezvous_.Missing()),
                     " before the deadline of the members' meeting; see `covey status`"));
  }
  if (now >= meet_by_) {
    return absl::DeadlineExceededError(absl::StrCat(
        generation, "the members have not met before the deadline; see `covey status`"));
  }
  return std::nullopt;
}

std::string GroupSession::TakeLoss(absl::Time now) {
  if (now >= rendezvous_.retry_at()) {
    RecordLoss("what the members told each other while they met was lost");
  }
  return std::exchange(loss_, "");
}

void GroupSession::Wake(absl::Time now, Outbox& outbox) {
  for (const uint32_t rank : engine_.TakeQueries(now)) {
    Message query = MakeProbe(round_, members_.rank());
    query.envelope.mutable_group_probe()->mutable_slices_sent_query();
    SendProbe(rank, std::move(query), outbox);
  }
  if (state_ == State::kMeeting) {
    rendezvous_.Wake(now);
    FollowRendezvous(now, outbox);
  }
  engine_.Wake(now, outbox);
}

absl::Time GroupSession::NextWake() const {
  if (failed()) return engine_.look_again();
  if (!loss_.empty()) return absl::InfinitePast();
  return std::min({engine_.look_again(), std::max(engine_.deadline(), members_.DeadlineFloor()),
                   engine_.NextQuery(), meet_by_, rendezvous_.deadline(), rendezvous_.retry_at(),
                   rendezvous_.NextWake()});
}

}  // namespace covey::worker
