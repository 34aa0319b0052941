// How the members of a group meet, measure their links and agree: the part of GroupMachine that begins a
// generation.
#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/random.h"
#include "common/net/message.h"
#include "worker/group/group_machine.h"
#include "worker/group/measured_racks.h"

namespace covey::worker {
namespace {

// All members know the plan within a heartbeat or two; longer means that one of them is lost.
constexpr absl::Duration kAgreementPatience = absl::Seconds(60);
// Above so many members, they meet in log N messages each.
constexpr uint32_t kMeetDirectlyMax = 32;

// What each member tells the others, as bits that travel in floats: the step it has finished; whether
// it was interrupted, and how many numbers it brings along; what it knows of the members' places; then
// one round trip per level and probe size (0 = not measured).
constexpr size_t kProbeSizes[] = {0, LinkProber::kSmallProbeBytes, LinkProber::kLargeProbeBytes};
constexpr size_t kStepAt = 0;
constexpr size_t kInterruptedAt = 2;
constexpr size_t kWordsAt = 3;
constexpr size_t kPlacesAt = 4;
constexpr size_t kTripsAt = 6;
constexpr size_t kRecordFloats = kTripsAt + kLevels * std::size(kProbeSizes);
// More than any model has buckets.
constexpr uint32_t kWordsMax = 3 * kTablesMax;

void WriteWord(uint64_t word, std::span<float> at) {
  at[0] = std::bit_cast<float>(static_cast<uint32_t>(word));
  at[1] = std::bit_cast<float>(static_cast<uint32_t>(word >> 32));
}

uint64_t ReadWord(std::span<const float> at) {
  return std::bit_cast<uint32_t>(at[0]) | static_cast<uint64_t>(std::bit_cast<uint32_t>(at[1]))
                                              << 32;
}

void WriteSamples(std::span<const LinkSample> samples, std::span<float> record) {
  for (const LinkSample& sample : samples) {
    const size_t size =
        std::find(std::begin(kProbeSizes), std::end(kProbeSizes), sample.bytes) - kProbeSizes;
    float& trip =
        record[kTripsAt + static_cast<size_t>(sample.level) * std::size(kProbeSizes) + size];
    const auto seconds = static_cast<float>(sample.round_trip_seconds);
    if (trip == 0 || seconds < trip) trip = seconds;
  }
}

void ReadSamples(std::span<const float> record, std::vector<LinkSample>& samples) {
  for (size_t level = 0; level < kLevels; ++level) {
    for (size_t size = 0; size < std::size(kProbeSizes); ++size) {
      const float trip = record[kTripsAt + level * std::size(kProbeSizes) + size];
      if (trip > 0) {
        samples.push_back({.level = static_cast<Level>(level),
                           .bytes = kProbeSizes[size],
                           .round_trip_seconds = trip});
      }
    }
  }
}

}  // namespace

void GroupMachine::Form(absl::Time now, const proto::Group& group, Outbox& outbox,
                        uint64_t attempt) {
  id_ = GroupId(group.id());
  generation_ = group.generation();
  members_.clear();
  paths_.clear();
  for (const uint64_t node : group.members()) {
    members_.push_back(NodeId(node));
    const proto::Node* member = view_->FindNode(NodeId(node));
    paths_.push_back(ParseTopologyPath(member == nullptr ? "" : member->labels()));
  }
  size_ = static_cast<uint32_t>(members_.size());
  std::deque<Message> kept = before_forming_.Take({});
  attempt_ = std::max(attempt, NewestAttempt(kept));
  heard_.assign(size_, 0);
  loss_.clear();
  sender_.ForgetCounts();
  const bool recovers = group.recovery_generation() == generation_ || attempt_ > 0;
  rank_ =
      static_cast<uint32_t>(std::find(members_.begin(), members_.end(), self_) - members_.begin());
  COVEY_CHECK(rank_ < size_);  // GroupOf(self) found it.
  plans_.clear();
  choices_.clear();
  last_plain_ = 0;
  last_started_.clear();
  early_.Clear();
  agreeing_ = false;
  meet_again_ = absl::InfiniteFuture();
  superseded_ = false;
  overtaken_ = false;
  brought_.clear();
  own_words_ = on_meet_ ? on_meet_() : std::vector<uint64_t>();
  if (has_been_ready_) meet_by_ = std::min(meet_by_, now + kAgreementPatience);
  // What the members know of their links from before will do.
  const bool measures = options_.formation == Formation::kMeasured && !recovers;
  finding_racks_ = measures && RacksAreToBeMeasured(paths_);
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
  agreed_step_ = std::max(own_step_, steps_before_);
  ready_ = options_.formation == Formation::kAtOnce && !interrupted_;
  for (const Message& message : kept) Receive(now, message, outbox);
  if (ready_) {
    has_been_ready_ = true;
    meet_by_ = absl::InfiniteFuture();
    if (on_ready_) on_ready_(now, outbox);
    return;
  }
  if (measures && failure_.ok() && !superseded_) {
    if (finding_racks_) {
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
  if (!formed() || ready_ || !failure_.ok() || agreeing_ || superseded_) return;
  for (const DistanceProber::Probe& probe : distance_prober_.TakeProbes()) {
    SendProbe(probe.peer, probe.number, 0, outbox);
  }
  for (const LinkProber::Probe& probe : prober_.TakeProbes()) {
    SendProbe(probe.peer, probe.number, probe.bytes, outbox);
  }
  if (finding_racks_) {
    if (distance_prober_.done()) TellDistances(now, outbox);
  } else if (prober_.done()) {
    Agree(now, outbox);
  }
}

void GroupMachine::SendProbe(uint32_t peer, uint64_t number, size_t bytes, Outbox& outbox) {
  Reach(peer, outbox);
  Message message;
  message.set_to(AddressOf(peer));
  proto::GroupProbe& body = *message.envelope.mutable_group_probe();
  body.set_group(id_.value());
  body.set_generation(formation());
  body.set_from_rank(rank_);
  body.set_number(number);
  if (bytes > 0) {
    Buffer zeros = Buffer::Allocate(bytes);
    std::fill_n(zeros.MutableData(), bytes, 0);
    message.frames.push_back(std::move(zeros));
  }
  outbox.Send(std::move(message));
}

void GroupMachine::ReceiveProbe(absl::Time now, const Message& message, Outbox& outbox) {
  const proto::GroupProbe& probe = message.envelope.group_probe();
  if (probe.from_rank() == rank_ || !IsMember(message, probe.from_rank())) return;
  if (ReceiveQuestion(message, outbox)) return;
  if (probe.echo()) {
    distance_prober_.Echo(now, probe.from_rank(), probe.number());
    prober_.Echo(now, probe.from_rank(), probe.number());
    Probe(now, outbox);
    return;
  }
  Reach(probe.from_rank(), outbox);
  Message reply;
  reply.set_to(AddressOf(probe.from_rank()));
  proto::GroupProbe& body = *reply.envelope.mutable_group_probe();
  body = probe;
  body.set_from_rank(rank_);
  body.set_echo(true);
  outbox.Send(std::move(reply));
}

void GroupMachine::Exchange(
    absl::Time now, Records records,
    std::function<void(absl::Time, const std::vector<float>&, Outbox&)> then, Outbox& outbox) {
  agreeing_ = true;
  // Owned by the collective: the transport may read it after this generation is forgotten.
  Collective meeting{
      .id = {.stream = kFormationStream, .sequence = ++last_started_[kFormationStream]},
      .kind = CollectiveKind::kAllGather,
      .data = *records,
      .owner = records,
      .parts = EvenParts(records->size(), size_),
      .deadline = now + kAgreementPatience,
      .algorithm = size_ <= kMeetDirectlyMax ? Algorithm::kDirect : Algorithm::kHalvingDoubling};
  meet_again_ = now + Patience();
  meeting.done = [this, formed_as = formation(), records, then = std::move(then)](
                     absl::Time now, const CollectiveResult& result, Outbox& outbox) {
    // It may have arrived, and wait for its frames until nobody wants this generation any more.
    if (!result.status.ok() || formed_as != formation() || superseded_) return;
    agreeing_ = false;
    meet_again_ = absl::InfiniteFuture();
    then(now, *records, outbox);
  };
  Begin(now, std::move(meeting), outbox);
}

void GroupMachine::TellDistances(absl::Time now, Outbox& outbox) {
  const auto rows = std::make_shared<std::vector<float>>(size_t{size_} * size_);
  std::copy(distance_prober_.seconds().begin(), distance_prober_.seconds().end(),
            rows->begin() + static_cast<ptrdiff_t>(size_t{rank_} * size_));
  Exchange(
      now, rows,
      [this](absl::Time now, const std::vector<float>& distances, Outbox& outbox) {
        FindRacks(now, distances, outbox);
      },
      outbox);
}

// Then links are measured as if labels had said so.
void GroupMachine::FindRacks(absl::Time now, const std::vector<float>& distances, Outbox& outbox) {
  DistanceMatrix matrix(size_);
  for (uint32_t from = 0; from < size_; ++from) {
    for (uint32_t to = 0; to < size_; ++to) matrix.Set(from, to, distances[from * size_ + to]);
  }
  measured_racks_ = NameMeasuredRacks(matrix, paths_);
  plans_.clear();
  finding_racks_ = false;
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

void GroupMachine::Agree(absl::Time now, Outbox& outbox) {
  if (!prober_.samples().empty()) {
    own_samples_.assign(prober_.samples().begin(), prober_.samples().end());
  }
  const auto records = std::make_shared<std::vector<float>>(kRecordFloats * size_);
  const std::span<float> own = std::span(*records).subspan(kRecordFloats * rank_, kRecordFloats);
  WriteWord(own_step_, own.subspan(kStepAt));
  own[kInterruptedAt] = std::bit_cast<float>(static_cast<uint32_t>(interrupted_ ? 1 : 0));
  own[kWordsAt] = std::bit_cast<float>(static_cast<uint32_t>(own_words_.size()));
  WriteWord(KnownPlaces(), own.subspan(kPlacesAt));
  WriteSamples(own_samples_, own);
  Exchange(
      now, records,
      [this](absl::Time now, const std::vector<float>& records, Outbox& outbox) {
        Agreed(now, records, outbox);
      },
      outbox);
}

void GroupMachine::Agreed(absl::Time now, const std::vector<float>& records, Outbox& outbox) {
  std::vector<LinkSample> samples;
  bool interrupted = false;
  bool knows_places = measured_racks_ == 0 && KnownPlaces() != 0;
  std::vector<uint32_t> words;
  for (uint32_t rank = 0; rank < size_; ++rank) {
    const auto record =
        std::span<const float>(records).subspan(kRecordFloats * rank, kRecordFloats);
    agreed_step_ = std::max(agreed_step_, ReadWord(record.subspan(kStepAt)));
    interrupted = interrupted || std::bit_cast<uint32_t>(record[kInterruptedAt]) != 0;
    words.push_back(std::bit_cast<uint32_t>(record[kWordsAt]));
    knows_places = knows_places && ReadWord(record.subspan(kPlacesAt)) == KnownPlaces();
    ReadSamples(record, samples);
  }
  if (!samples.empty()) costs_ = FitLinkCosts(samples, costs_);
  if (knows_places) {
    for (uint32_t rank = 0; rank < size_; ++rank) paths_[rank] = measured_paths_[members_[rank]];
    plans_.clear();
  } else if (measured_racks_ > 0) {
    measured_paths_.clear();
    for (uint32_t rank = 0; rank < size_; ++rank) measured_paths_[members_[rank]] = paths_[rank];
  }
  if (interrupted) {
    ShareWords(now, words, outbox);
  } else {
    Ready(now, outbox);
  }
}

// Of those that have any, all have as many.
void GroupMachine::ShareWords(absl::Time now, const std::vector<uint32_t>& counts, Outbox& outbox) {
  const uint32_t count = *std::max_element(counts.begin(), counts.end());
  for (uint32_t rank = 0; rank < size_; ++rank) {
    if (counts[rank] == 0 || (counts[rank] == count && count <= kWordsMax)) continue;
    Abort(now,
          absl::InvalidArgumentError(absl::StrCat("group ", id_.value(), ": ", NameOf(rank),
                                                  " trains another model than the others; ",
                                                  "give all members the same tables and options")),
          outbox);
    return;
  }
  if (count == 0) return Ready(now, outbox);
  const size_t floats = 2 * size_t{count};
  const auto shared = std::make_shared<std::vector<float>>(floats * size_);
  for (size_t i = 0; i < own_words_.size(); ++i) {
    WriteWord(own_words_[i], std::span(*shared).subspan(floats * rank_ + 2 * i, 2));
  }
  Exchange(
      now, shared,
      [this, counts, floats](absl::Time now, const std::vector<float>& all, Outbox& outbox) {
        brought_.resize(size_);
        for (uint32_t rank = 0; rank < size_; ++rank) {
          for (size_t i = 0; i < counts[rank]; ++i) {
            brought_[rank].push_back(
                ReadWord(std::span<const float>(all).subspan(floats * rank + 2 * i, 2)));
          }
        }
        Ready(now, outbox);
      },
      outbox);
}

void GroupMachine::Ready(absl::Time now, Outbox& outbox) {
  ready_ = true;
  has_been_ready_ = true;
  interrupted_ = false;
  meet_by_ = absl::InfiniteFuture();
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
