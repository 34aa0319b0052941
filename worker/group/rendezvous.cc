// SPDX-License-Identifier: Apache-2.0
#include "worker/group/rendezvous.h"

#include <algorithm>
#include <span>
#include <utility>

#include "common/base/check.h"
#include "common/base/random.h"
#include "common/cluster/limits.h"
#include "common/cluster/view.h"
#include "common/grouping/measured_racks.h"
#include "worker/group/group_messages.h"
#include "worker/group/staged_prober.h"

namespace covey::worker {
namespace {

// All members know the plan within a heartbeat or two; longer means that one of them is lost.
constexpr absl::Duration kExchangeMax = absl::Seconds(60);

// Of each level, size and number of messages the shortest.
std::vector<LinkSample> ShortestTrips(std::span<const LinkSample> samples) {
  std::vector<LinkSample> trips;
  for (const LinkSample& sample : samples) {
    const auto same = std::find_if(trips.begin(), trips.end(), [&](const LinkSample& trip) {
      return trip.level == sample.level && trip.bytes == sample.bytes &&
             trip.messages == sample.messages;
    });
    if (same == trips.end()) {
      trips.push_back(sample);
    } else {
      same->round_trip_seconds = std::min(same->round_trip_seconds, sample.round_trip_seconds);
    }
  }
  // As the others will hear it: all members must fit their costs to the same bits.
  for (LinkSample& trip : trips) {
    trip.round_trip_seconds = static_cast<float>(trip.round_trip_seconds);
  }
  return trips;
}

}  // namespace

bool Rendezvous::IsLegal(State from, State to) {
  if (to == State::kNone || to == State::kListening) return true;
  if (to == State::kSuperseded) return from != State::kNone;
  switch (from) {
    case State::kListening:
      return to == State::kRanging || to == State::kMeasuring || to == State::kReady;
    case State::kRanging:
      return to == State::kSharingDistances;
    case State::kSharingDistances:
      return to == State::kMeasuring;
    case State::kMeasuring:
      return to == State::kSharingStates;
    case State::kSharingStates:
      return to == State::kReady;
    case State::kNone:
    case State::kReady:
    case State::kSuperseded:
      return false;
  }
  return false;
}

void Rendezvous::Enter(State state) {
  COVEY_CHECK(IsLegal(state_, state));
  state_ = state;
  retry_at_ = absl::InfiniteFuture();
  deadline_ = absl::InfiniteFuture();
}

void Rendezvous::Begin(Setup setup) {
  Enter(State::kListening);
  setup_ = std::move(setup);
  const auto size = static_cast<uint32_t>(setup_.members.size());
  distances_.Begin(setup_.rank, size);
  states_.Begin(setup_.rank, size);
  distance_prober_ = DistanceProber();
  link_prober_ = LinkProber();
  outgoing_.clear();
  measured_racks_ = 0;
  costs_ = LinkCosts();
  costs_.slice_bytes = setup_.slice_bytes;
  agreed_step_ = std::max(setup_.finished, setup_.first_agreed);
  recovery_state_.clear();
}

void Rendezvous::Start(absl::Time now) {
  if (setup_.measures && RacksAreToBeMeasured(setup_.paths)) {
    Enter(State::kRanging);
    distance_prober_.Begin(now, setup_.rank, static_cast<uint32_t>(setup_.members.size()));
  } else {
    Enter(State::kMeasuring);
    if (setup_.measures) link_prober_.Begin(now, setup_.rank, setup_.paths);
  }
  Advance(now);
}

void Rendezvous::Supersede() {
  Enter(State::kSuperseded);
  distance_prober_ = DistanceProber();
  link_prober_ = LinkProber();
}

void Rendezvous::End() {
  Enter(State::kNone);
  distance_prober_ = DistanceProber();
  link_prober_ = LinkProber();
}

void Rendezvous::Receive(absl::Time now, uint32_t from, const proto::GroupProbe& probe) {
  if (probe.has_link() && !probe.link().reply()) {
    proto::LinkEcho& echo = *AddProbe(from, 0).mutable_link();
    echo.set_number(probe.link().number());
    echo.set_reply(true);
  } else if (probe.has_distance() && !probe.distance().reply()) {
    proto::DistanceEcho& echo = *AddProbe(from, 0).mutable_distance();
    echo.set_number(probe.distance().number());
    echo.set_reply(true);
  } else if (probe.has_link()) {
    link_prober_.Echo(now, from, probe.link().number());
    Advance(now);
  } else if (probe.has_distance()) {
    distance_prober_.Echo(now, from, probe.distance().number());
    Advance(now);
  }
}

absl::Status Rendezvous::ReceiveHello(absl::Time now, const Message& message) {
  if (state_ == State::kNone || ready() || superseded()) return absl::OkStatus();
  absl::StatusOr<std::vector<MemberHello>> hellos =
      ReadHellos(message, static_cast<uint32_t>(setup_.members.size()));
  if (!hellos.ok()) return hellos.status();
  for (MemberHello& hello : *hellos) {
    const bool ranges = std::holds_alternative<MemberDistances>(hello.said);
    (ranges ? distances_ : states_).Hear(std::move(hello));
  }
  Advance(now);
  return absl::OkStatus();
}

void Rendezvous::Wake(absl::Time now) {
  distance_prober_.Wake(now);
  link_prober_.Wake(now);
  Advance(now);
}

absl::Time Rendezvous::NextWake() const {
  return std::min(distance_prober_.NextWake(), link_prober_.NextWake());
}

void Rendezvous::Advance(absl::Time now) {
  if (state_ == State::kRanging) {
    for (const DistanceProber::Probe& probe : distance_prober_.TakeProbes()) {
      AddProbe(probe.peer, 0).mutable_distance()->set_number(probe.number);
    }
    if (!distance_prober_.done()) return;
    BeginExchange(now, State::kSharingDistances,
                  {.rank = setup_.rank, .said = distance_prober_.seconds()});
  }
  if (state_ == State::kSharingDistances) {
    SendHellos();
    if (!distances_.complete()) return;
    FindRacks();
    Enter(State::kMeasuring);
    link_prober_.Begin(now, setup_.rank, setup_.paths);
  }
  if (state_ == State::kMeasuring) {
    for (const LinkProber::Probe& probe : link_prober_.TakeProbes()) {
      AddProbe(probe.peer, probe.bytes).mutable_link()->set_number(probe.number);
    }
    if (!link_prober_.done()) return;
    if (!link_prober_.samples().empty()) own_samples_ = link_prober_.samples();
    BeginExchange(now, State::kSharingStates, {.rank = setup_.rank, .said = OwnState()});
  }
  if (state_ == State::kSharingStates) {
    SendHellos();
    if (states_.complete()) TakeStates();
  }
}

proto::GroupProbe& Rendezvous::AddProbe(uint32_t peer, size_t bytes) {
  Message& message = outgoing_.emplace_back().message;
  outgoing_.back().peer = peer;
  proto::GroupProbe& probe = *message.envelope.mutable_group_probe();
  WriteRound(setup_.round, *probe.mutable_round());
  probe.set_from_rank(setup_.rank);
  if (bytes > 0) message.frames.push_back(ProbeFrame(bytes));
  return probe;
}

void Rendezvous::BeginExchange(absl::Time now, State state, MemberHello hello) {
  Enter(state);
  retry_at_ = now + setup_.patience;
  deadline_ = now + kExchangeMax;
  exchange().Say(std::move(hello));
}

void Rendezvous::SendHellos() {
  for (const HelloExchange::Outgoing& next : exchange().TakeOutgoing()) {
    std::span<const MemberHello* const> left = next.hellos;
    while (!left.empty()) {
      size_t count = 0;
      for (size_t bytes = 0; count < left.size(); ++count) {
        bytes += EncodedBytesMax(*left[count]);
        if (count > 0 && bytes > kGroupHelloBytesMax) break;
      }
      Message& message = outgoing_.emplace_back().message;
      outgoing_.back().peer = next.peer;
      proto::GroupHello& hello = *message.envelope.mutable_group_hello();
      WriteRound(setup_.round, *hello.mutable_round());
      hello.set_from_rank(setup_.rank);
      WriteHellos(left.first(count), message);
      left = left.subspan(count);
    }
  }
}

// Then links are measured as if labels had said so.
void Rendezvous::FindRacks() {
  const auto size = static_cast<uint32_t>(setup_.members.size());
  DistanceMatrix matrix(size);
  for (uint32_t from = 0; from < size; ++from) {
    const auto& seconds = std::get<MemberDistances>(distances_.of(from).said);
    for (uint32_t to = 0; to < size; ++to) matrix.Set(from, to, seconds[to]);
  }
  measured_racks_ = NameMeasuredRacks(matrix, setup_.paths);
}

// What this member knows of the places of all members, beyond their labels; 0 = not of all.
uint64_t Rendezvous::KnownPlaces() const {
  uint64_t known = 1;
  for (const NodeId member : setup_.members) {
    const auto found = measured_paths_.find(member);
    if (found == measured_paths_.end()) return 0;
    known = MixBits(known ^ member.value());
    known = MixBits(known ^ JobFingerprint(FormatTopologyPath(found->second)));
  }
  return known;
}

MemberState Rendezvous::OwnState() const {
  return {.finished = setup_.finished,
          .interrupted = setup_.interrupted,
          .known_places = KnownPlaces(),
          .round_trips = ShortestTrips(own_samples_),
          .progress = setup_.progress};
}

void Rendezvous::TakeStates() {
  retry_at_ = absl::InfiniteFuture();
  deadline_ = absl::InfiniteFuture();
  std::vector<LinkSample> samples;
  bool interrupted = false;
  bool knows_places = measured_racks_ == 0 && KnownPlaces() != 0;
  const std::vector<NodeId>& members = setup_.members;
  for (uint32_t rank = 0; rank < members.size(); ++rank) {
    const auto& state = std::get<MemberState>(states_.of(rank).said);
    agreed_step_ = std::max(agreed_step_, state.finished);
    interrupted = interrupted || state.interrupted;
    knows_places = knows_places && state.known_places == KnownPlaces();
    samples.insert(samples.end(), state.round_trips.begin(), state.round_trips.end());
  }
  if (!samples.empty()) costs_ = FitLinkCosts(samples, costs_);
  if (knows_places) {
    for (uint32_t i = 0; i < members.size(); ++i) setup_.paths[i] = measured_paths_[members[i]];
  } else if (measured_racks_ > 0) {
    measured_paths_.clear();
    for (uint32_t i = 0; i < members.size(); ++i) measured_paths_[members[i]] = setup_.paths[i];
  }
  if (interrupted) TakeProgress();
  Enter(State::kReady);
}

void Rendezvous::TakeProgress() {
  std::vector<MemberProgress> progress;
  bool has_model = false;
  for (uint32_t rank = 0; rank < setup_.members.size(); ++rank) {
    progress.push_back(std::get<MemberState>(states_.of(rank).said).progress);
    has_model = has_model || !progress.back().buckets.empty();
  }
  if (has_model) recovery_state_ = std::move(progress);
}

}  // namespace covey::worker
