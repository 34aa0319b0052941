// How the members of a group meet, measure their links and agree: the part of GroupMachine that begins a
// generation.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/random.h"
#include "common/net/message.h"
#include "worker/group/group_machine.h"
#include "worker/group/measured_racks.h"
#include "worker/group/member_hello.h"

namespace covey::worker {
namespace {

// All members know the plan within a heartbeat or two; longer means that one of them is lost.
constexpr absl::Duration kAgreementPatience = absl::Seconds(60);
// Of each level and size the shortest.
std::vector<LinkSample> ShortestTrips(std::span<const LinkSample> samples) {
  std::vector<LinkSample> trips;
  for (const LinkSample& sample : samples) {
    const auto same = std::find_if(trips.begin(), trips.end(), [&](const LinkSample& trip) {
      return trip.level == sample.level && trip.bytes == sample.bytes;
    });
    if (same == trips.end()) {
      trips.push_back(sample);
    } else {
      same->round_trip_seconds = std::min(same->round_trip_seconds, sample.round_trip_seconds);
    }
  }
  return trips;
}

}  // namespace

void GroupMachine::StartRendezvous(absl::Time now, const proto::Group& group, Outbox& outbox,
                                   uint32_t attempt) {
  id_ = GroupId(group.id());
  generation_ = group.generation();
  members_.clear();
  paths_.clear();
  for (const uint64_t node : group.members()) {
    members_.push_back(NodeId(node));
    const proto::Node* member = view().FindNode(NodeId(node));
    paths_.push_back(ParseTopologyPath(member == nullptr ? "" : member->labels()));
  }
  size_ = static_cast<uint32_t>(members_.size());
  std::deque<Message> kept = before_forming_.Take({});
  attempt_ = std::max(attempt, NewestAttempt(kept));
  plan_.Follow(id_, generation_, members_);
  loss_detector_.Begin(size_);
  loss_.clear();
  sender_.ForgetCounts();
  const bool recovers = group.recovery_generation() == generation_ || attempt_ > 0;
  rank_ = static_cast<uint32_t>(std::find(members_.begin(), members_.end(), plan_.self()) -
                                members_.begin());
  COVEY_CHECK(rank_ < size_);  // GroupOf(self) found it.
  plans_.clear();
  choices_.clear();
  last_plain_ = 0;
  last_started_.clear();
  early_.Clear();
  exchanging_ = false;
  retry_at_ = absl::InfiniteFuture();
  superseded_ = false;
  member_went_over_ = false;
  exchange_by_ = absl::InfiniteFuture();
  distances_.Begin(rank_, size_);
  states_.Begin(rank_, size_);
  recovery_state_.clear();
  own_progress_ = on_meet_ ? on_meet_() : MemberProgress();
  if (has_been_ready_) rendezvous_by_ = std::min(rendezvous_by_, now + kAgreementPatience);
  // What the members know of their links from before will do.
  const bool measures = options_.formation == Formation::kMeasured && !recovers;
  ranging_ = measures && RacksAreToBeMeasured(paths_);
  measured_racks_ = 0;
  distance_prober_ = DistanceProber();
  prober_ = LinkProber();
  for (const Collective& waiting : std::exchange(waiting_, {})) {
    if (!waiting.done) continue;
    waiting.done(now,
                 {.status = absl::UnavailableError(absl::StrCat(
                      Describe(waiting), ": the group has other members now; start it again"))},
                 outbox);
  }
  costs_ = LinkCosts();
  costs_.slice_bytes = options_.slice_bytes;
  steps_before_ = std::max<uint64_t>(group.first_step(), 1) - 1;
  agreed_step_ = std::max(finished_step_, steps_before_);
  ready_ = options_.formation == Formation::kAtOnce && !interrupted_;
  for (const Message& message : kept) Receive(now, message, outbox);
  if (ready_) {
    has_been_ready_ = true;
    rendezvous_by_ = absl::InfiniteFuture();
    if (on_ready_) on_ready_(now, outbox);
    return;
  }
  if (measures && failure_.ok() && !superseded_) {
    if (ranging_) {
      distance_prober_.Begin(now, rank_, size_);
    } else {
      prober_.Begin(now, rank_, paths_);
    }
  }
  Probe(now, outbox);
  Advance(now, outbox);
}

// Sends what the probers have to say; when one is done, the members tell each other.
void GroupMachine::Probe(absl::Time now, Outbox& outbox) {
  if (!formed() || ready_ || !failure_.ok() || exchanging_ || superseded_) return;
  for (const DistanceProber::Probe& probe : distance_prober_.TakeProbes()) {
    Message message = MakeProbe(probe.peer, outbox);
    message.envelope.mutable_group_probe()->mutable_distance()->set_number(probe.number);
    outbox.Send(std::move(message));
  }
  for (const LinkProber::Probe& probe : prober_.TakeProbes()) {
    Message message = MakeProbe(probe.peer, outbox);
    message.envelope.mutable_group_probe()->mutable_link()->set_number(probe.number);
    if (probe.bytes > 0) {
      Buffer zeros = Buffer::Allocate(probe.bytes);
      std::fill_n(zeros.MutableData(), probe.bytes, 0);
      message.frames.push_back(std::move(zeros));
    }
    outbox.Send(std::move(message));
  }
  if (ranging_) {
    if (distance_prober_.done() && !distance_prober_.seconds().empty()) ShareDistances(now, outbox);
  } else if (prober_.done()) {
    ShareState(now, outbox);
  }
}

Message GroupMachine::MakeProbe(uint32_t peer, Outbox& outbox) {
  EnsureRoute(peer, outbox);
  Message message;
  message.set_to(AddressOf(peer));
  proto::GroupProbe& body = *message.envelope.mutable_group_probe();
  WriteRound(round(), *body.mutable_round());
  body.set_from_rank(rank_);
  return message;
}

void GroupMachine::ReceiveProbe(absl::Time now, const Message& message, Outbox& outbox) {
  const proto::GroupProbe& probe = message.envelope.group_probe();
  const uint32_t rank = probe.from_rank();
  if (rank == rank_ || !IsMember(message, rank)) return;
  switch (probe.kind_case()) {
    case proto::GroupProbe::kSlicesSentQuery:
      return AnswerSlicesSent(rank, outbox);
    case proto::GroupProbe::kSlicesSent:
      return ReceiveSlicesSent(rank, probe.slices_sent().slices());
    case proto::GroupProbe::kLink:
      if (probe.link().reply()) {
        prober_.Echo(now, rank, probe.link().number());
        return Probe(now, outbox);
      }
      break;
    case proto::GroupProbe::kDistance:
      if (probe.distance().reply()) {
        distance_prober_.Echo(now, rank, probe.distance().number());
        return Probe(now, outbox);
      }
      break;
    case proto::GroupProbe::KIND_NOT_SET:
      return;
  }
  Message reply = MakeProbe(rank, outbox);
  proto::GroupProbe& body = *reply.envelope.mutable_group_probe();
  if (probe.has_link()) {
    *body.mutable_link() = probe.link();
    body.mutable_link()->set_reply(true);
  } else {
    *body.mutable_distance() = probe.distance();
    body.mutable_distance()->set_reply(true);
  }
  outbox.Send(std::move(reply));
}

void GroupMachine::BeginExchange(absl::Time now, HelloExchange& exchange, MemberHello hello,
                                 Outbox& outbox) {
  exchanging_ = true;
  exchange_by_ = now + kAgreementPatience;
  retry_at_ = now + Patience();
  exchange.Say(std::move(hello));
  AdvanceHellos(now, outbox);
}

void GroupMachine::ReceiveHello(absl::Time now, const Message& message, Outbox& outbox) {
  const uint32_t from = message.envelope.group_hello().from_rank();
  if (ready_ || superseded_ || from == rank_ || !IsMember(message, from)) return;
  absl::StatusOr<std::vector<MemberHello>> hellos = ReadHellos(message, size_);
  if (absl::IsDataLoss(hellos.status())) {
    return RecordLoss(absl::StrCat("what ", NameOf(from), " said to ", NameOf(rank_),
                                   " was damaged: ", hellos.status().message()));
  }
  if (!hellos.ok()) {
    return Abort(now,
                 absl::InvalidArgumentError(absl::StrCat(
                     "group ", id_.value(), ": ", NameOf(from), " sent ", hellos.status().message(),
                     "; all members must run the same version")),
                 outbox);
  }
  for (MemberHello& hello : *hellos) {
    HelloExchange& exchange =
        std::holds_alternative<MemberDistances>(hello.said) ? distances_ : states_;
    exchange.Hear(std::move(hello));
  }
  AdvanceHellos(now, outbox);
}

void GroupMachine::AdvanceHellos(absl::Time now, Outbox& outbox) {
  if (!exchanging_) return;
  HelloExchange& exchange = ranging_ ? distances_ : states_;
  SendHellos(exchange, outbox);
  if (!exchange.complete()) return;
  EndExchange();
  if (ranging_) {
    FindRacks(now, outbox);
  } else {
    TakeStates(now, outbox);
  }
}

void GroupMachine::SendHellos(HelloExchange& exchange, Outbox& outbox) {
  for (const HelloExchange::Outgoing& outgoing : exchange.TakeOutgoing()) {
    std::span<const MemberHello* const> left = outgoing.hellos;
    while (!left.empty()) {
      size_t count = 0;
      for (size_t bytes = 0; count < left.size(); ++count) {
        bytes += EncodedBytesMax(*left[count]);
        if (count > 0 && bytes > kGroupHelloBytesMax) break;
      }
      EnsureRoute(outgoing.peer, outbox);
      Message message;
      message.set_to(AddressOf(outgoing.peer));
      proto::GroupHello& body = *message.envelope.mutable_group_hello();
      WriteRound(round(), *body.mutable_round());
      body.set_from_rank(rank_);
      WriteHellos(left.first(count), message);
      outbox.Send(std::move(message));
      left = left.subspan(count);
    }
  }
}

void GroupMachine::EndExchange() {
  exchanging_ = false;
  exchange_by_ = absl::InfiniteFuture();
  retry_at_ = absl::InfiniteFuture();
}

void GroupMachine::ShareDistances(absl::Time now, Outbox& outbox) {
  BeginExchange(now, distances_, {.rank = rank_, .said = distance_prober_.seconds()}, outbox);
}

// Then links are measured as if labels had said so.
void GroupMachine::FindRacks(absl::Time now, Outbox& outbox) {
  DistanceMatrix matrix(size_);
  for (uint32_t from = 0; from < size_; ++from) {
    const auto& seconds = std::get<MemberDistances>(distances_.of(from).said);
    for (uint32_t to = 0; to < size_; ++to) matrix.Set(from, to, seconds[to]);
  }
  measured_racks_ = NameMeasuredRacks(matrix, paths_);
  plans_.clear();
  ranging_ = false;
  prober_.Begin(now, rank_, paths_);
  Probe(now, outbox);
}

// What this member knows of the places of all members, beyond their labels; 0 = not of all.
uint64_t GroupMachine::KnownPlaces() const {
  uint64_t known = 1;
  for (const NodeId member : members_) {
    const auto found = measured_paths_.find(member);
    if (found == measured_paths_.end()) return 0;
    known = MixBits(known ^ member.value());
    known = MixBits(known ^ JobFingerprint(FormatTopologyPath(found->second)));
  }
  return known;
}

void GroupMachine::ShareState(absl::Time now, Outbox& outbox) {
  if (!prober_.samples().empty()) {
    own_samples_.assign(prober_.samples().begin(), prober_.samples().end());
  }
  BeginExchange(now, states_,
                {.rank = rank_,
                 .said = MemberState{.finished = Step(finished_step_),
                                     .interrupted = interrupted_,
                                     .known_places = KnownPlaces(),
                                     .round_trips = ShortestTrips(own_samples_),
                                     .progress = own_progress_}},
                outbox);
}

void GroupMachine::TakeStates(absl::Time now, Outbox& outbox) {
  std::vector<LinkSample> samples;
  bool interrupted = false;
  bool knows_places = measured_racks_ == 0 && KnownPlaces() != 0;
  for (uint32_t rank = 0; rank < size_; ++rank) {
    const auto& state = std::get<MemberState>(states_.of(rank).said);
    agreed_step_ = std::max(agreed_step_, state.finished.value());
    interrupted = interrupted || state.interrupted;
    knows_places = knows_places && state.known_places == KnownPlaces();
    samples.insert(samples.end(), state.round_trips.begin(), state.round_trips.end());
  }
  if (!samples.empty()) costs_ = FitLinkCosts(samples, costs_);
  if (knows_places) {
    for (uint32_t rank = 0; rank < size_; ++rank) paths_[rank] = measured_paths_[members_[rank]];
    plans_.clear();
  } else if (measured_racks_ > 0) {
    measured_paths_.clear();
    for (uint32_t rank = 0; rank < size_; ++rank) measured_paths_[members_[rank]] = paths_[rank];
  }
  if (interrupted && !TakeProgress(now, outbox)) return;
  Ready(now, outbox);
}

// All members that have a model have the same one.
bool GroupMachine::TakeProgress(absl::Time now, Outbox& outbox) {
  std::vector<MemberProgress> progress;
  size_t buckets = 0;
  for (uint32_t rank = 0; rank < size_; ++rank) {
    progress.push_back(std::get<MemberState>(states_.of(rank).said).progress);
    buckets = std::max(buckets, progress.back().size());
  }
  for (uint32_t rank = 0; rank < size_; ++rank) {
    if (progress[rank].empty() || progress[rank].size() == buckets) continue;
    Abort(now,
          absl::InvalidArgumentError(absl::StrCat("group ", id_.value(), ": ", NameOf(rank),
                                                  " trains another model than the others; ",
                                                  "give all members the same tables and options")),
          outbox);
    return false;
  }
  if (buckets > 0) recovery_state_ = std::move(progress);
  return true;
}

void GroupMachine::Ready(absl::Time now, Outbox& outbox) {
  ready_ = true;
  has_been_ready_ = true;
  interrupted_ = false;
  rendezvous_by_ = absl::InfiniteFuture();
  if (on_ready_) on_ready_(now, outbox);
  for (Collective& waiting : std::exchange(waiting_, {})) {
    if (ready_ && failure_.ok()) {
      Begin(now, std::move(waiting), outbox);
    } else if (waiting.done) {
      // A slice that came before was damaged.
      waiting.done(now, {.status = failure_.ok() ? stopped_ : failure_}, outbox);
    }
  }
  Advance(now, outbox);
}

}  // namespace covey::worker
