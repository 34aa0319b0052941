// SPDX-License-Identifier: Apache-2.0
#include "worker/collective/collective_engine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/collective/collective_kind.h"
#include "common/collective/part_range.h"
#include "common/net/frame_checksum.h"
#include "common/net/release_poll.h"

namespace covey::worker {

CollectiveEngine::CollectiveEngine(const Options& options, Host& host)
    : slice_bytes_(options.slice_bytes), host_(host), plans_(options.algorithm) {
  COVEY_CHECK(slice_bytes_ > 0 && slice_bytes_ % kElementBytesMax == 0);
}

void CollectiveEngine::BeginRound(Membership membership) {
  if (state_ != State::kFailed) state_ = State::kWaiting;
  group_ = membership.group;
  rank_ = membership.rank;
  size_ = static_cast<uint32_t>(membership.paths.size());
  plans_.Reset(std::move(membership.paths), membership.costs);
  started_.last_plain = 0;
  started_.last_started.clear();
  early_.Clear();
  loss_detector_.Begin(size_);
  sender_.ForgetCounts();
}

void CollectiveEngine::MembersMet(const std::vector<TopologyPath>& paths, const LinkCosts& costs) {
  COVEY_CHECK(state_ == State::kWaiting && paths.size() == size_);
  state_ = State::kRunning;
  plans_.Reset(paths, costs);
}

void CollectiveEngine::BeginWaiting(absl::Time now, Outbox& outbox) {
  for (Collective& waiting : std::exchange(started_.collectives, {})) {
    if (state_ == State::kRunning) {
      Begin(now, std::move(waiting), outbox);
    } else if (waiting.done) {
      // A slice that came before was damaged.
      waiting.done(now, {.status = failure().ok() ? runs_.stopped() : failure()}, outbox);
    }
  }
}

void CollectiveEngine::EndWaiting(absl::Time now, absl::string_view why, Outbox& outbox) {
  for (const Collective& waiting : std::exchange(started_.collectives, {})) {
    if (!waiting.done) continue;
    waiting.done(now,
                 {.status = absl::UnavailableError(absl::StrCat(Describe(waiting), ": ", why))},
                 outbox);
  }
}

void CollectiveEngine::Restore(absl::Time now, Waiting waiting, Outbox& outbox) {
  started_ = std::move(waiting);
  if (state_ == State::kFailed) EndStarted(now, failure(), outbox);
}

void CollectiveEngine::Start(absl::Time now, Collective collective, Outbox& outbox) {
  COVEY_CHECK(collective.root < size_);
  COVEY_CHECK(collective.kind == CollectiveKind::kBroadcast ||
              collective.kind == CollectiveKind::kBarrier || collective.parts.size() == size_);
  COVEY_CHECK(collective.format == WireFormat::kFloat32 ||
              (collective.data.type() == ElementType::kFloat32 && collective.op == ReduceOp::kSum));
  COVEY_CHECK(collective.data.type() != ElementType::kByte || !HasReduction(collective.kind));
  COVEY_CHECK(collective.slice_bytes % kElementBytesMax == 0 &&
              collective.slice_bytes <= kSliceBytesMax);
  COVEY_CHECK(collective.kind != CollectiveKind::kExchange ||
              (collective.algorithm == Algorithm::kDirect &&
               collective.data.type() == ElementType::kFloat32 &&
               collective.rows.size() == size_ * collective.parts[rank_].count));
  for (const PartRange& part : collective.parts) {
    COVEY_CHECK(part.first <= collective.data.size() &&
                part.count <= collective.data.size() - part.first);
  }
  uint64_t& last = started_.last_started[collective.id.stream];
  COVEY_CHECK(collective.id.sequence > last);
  last = collective.id.sequence;
  if (state_ == State::kFailed) {
    if (collective.done) collective.done(now, {.status = failure()}, outbox);
  } else if (state_ != State::kRunning) {
    started_.collectives.push_back(std::move(collective));
  } else {
    Begin(now, std::move(collective), outbox);
    Advance(now, outbox);
  }
}

void CollectiveEngine::Begin(absl::Time now, Collective collective, Outbox& outbox) {
  const CollectiveId id = collective.id;
  const std::shared_ptr<const Plan> plan = plans_.PlanFor(
      collective.kind, WireBytes(collective.data.type(), collective.format, collective.data.size()),
      collective.algorithm);
  const uint64_t own_epoch = collective.is_change_point ? host_.NewerPlanEpoch() : 0;
  const size_t slice_bytes = collective.slice_bytes > 0 ? collective.slice_bytes : slice_bytes_;
  const size_t slice_elements = slice_bytes / ElementBytes(collective.data.type());
  CollectiveRun& run =
      runs_.Add(std::move(collective), plan,
                {.rank = rank_, .slice_elements = slice_elements, .agreed_plan_epoch = own_epoch});
  const uint64_t number = run.number();
  run.began = now;
  loss_detector_.CollectiveBegan(now);
  run.Begin();
  for (const Message& slice : early_.Take(id)) {
    // It may have ended meanwhile, with the group or its round.
    if (runs_.Find(number) != nullptr) Apply(now, run, slice, outbox);
  }
  if (runs_.Find(number) != nullptr) QueueOutgoing(run, outbox);
}

void CollectiveEngine::Contribute(absl::Time now, const CollectiveId& id,
                                  const Contribution* contribution, Outbox& outbox) {
  if (state_ == State::kFailed) return;
  for (Collective& waiting : started_.collectives) {
    if (waiting.id != id) continue;
    // What came before the members have met knows of no newer plan than the group itself will.
    waiting.held = false;
    if (contribution != nullptr) waiting.samples = contribution->samples;
    return;
  }
  CollectiveRun* const run = runs_.Find(id);
  if (run == nullptr) return;
  if (contribution != nullptr) {
    run->Contribute(contribution->samples, contribution->agreed_plan_epoch);
  } else {
    run->Contribute(run->collective().samples, run->own_epoch());
  }
  QueueOutgoing(*run, outbox);
  runs_.Changed(*run);
  Advance(now, outbox);
}

void CollectiveEngine::QueueOutgoing(CollectiveRun& run, Outbox& outbox) {
  for (OutgoingSlice& outgoing : run.TakeOutgoing()) {
    SliceSender::Item item{.collective = run.number(), .priority = run.collective().priority};
    *item.message.envelope.mutable_group_slice() = std::move(outgoing.slice);
    host_.SetReceiver(outgoing.peer, item.message, outbox);
    item.peer = item.message.to().node;
    if (!outgoing.frame.empty()) {
      AddFrame(item.message, std::move(outgoing.frame), outgoing.checksum);
    }
    if (!outgoing.attachment.bytes.empty()) {
      AddFrame(item.message, std::move(outgoing.attachment.bytes), outgoing.attachment.checksum);
    }
    ++run.frames_out;
    sender_.Queue(std::move(item));
  }
}

void CollectiveEngine::Receive(absl::Time now, const Message& message, Outbox& outbox) {
  const proto::GroupSlice& slice = message.envelope.group_slice();
  loss_detector_.SliceCame(now, slice.from_rank());
  const CollectiveId id{.stream = slice.stream(), .sequence = slice.sequence()};
  if (CollectiveRun* const run = runs_.Find(id); run != nullptr) {
    const uint64_t number = run->number();
    Apply(now, *run, message, outbox);
    if (runs_.Find(number) != nullptr) QueueOutgoing(*run, outbox);
    return;
  }
  const auto last = started_.last_started.find(id.stream);
  // A collective may have been started and still wait for the members to meet.
  const bool over = state_ == State::kRunning && last != started_.last_started.end() &&
                    id.sequence <= last->second;
  if (over) return;
  if (early_.HasRoom(message, runs_.waiting_bytes())) {
    early_.Keep(id, message);
  } else {
    host_.Abort(now, TooFarAhead(slice.from_rank()), outbox);
  }
}

void CollectiveEngine::Apply(absl::Time now, CollectiveRun& run, const Message& message,
                             Outbox& outbox) {
  const proto::GroupSlice& slice = message.envelope.group_slice();
  const absl::Status taken = runs_.Take(run, message);
  if (absl::IsUnavailable(taken) || absl::IsDataLoss(taken)) {
    host_.RecordLoss(absl::StrCat(Describe(run.collective()), ": slices from ",
                                  host_.NameOf(slice.from_rank()), " to ", host_.NameOf(rank_),
                                  absl::IsDataLoss(taken)
                                      ? absl::StrCat(" were damaged: ", taken.message())
                                      : " were lost with a connection"));
  } else if (!taken.ok()) {
    host_.Abort(now, Misfit(run, slice, taken), outbox);
  } else if (early_.bytes() + runs_.waiting_bytes() > kGroupEarlyBytesMax) {
    host_.Abort(now, TooFarAhead(slice.from_rank()), outbox);
  }
}

void CollectiveEngine::Fail(absl::Time now, const absl::Status& status, Outbox& outbox) {
  state_ = State::kFailed;
  sender_.CancelQueued([this](uint64_t number) { runs_.Released(number); });
  early_.Clear();
  runs_.FailAll(status);
  Advance(now, outbox);
  EndStarted(now, status, outbox);
}

void CollectiveEngine::Stop(absl::Time now, const absl::Status& status, Outbox& outbox) {
  state_ = State::kWaiting;
  sender_.CancelQueued([this](uint64_t number) { runs_.Released(number); });
  early_.Clear();
  runs_.AbandonAll(status);
  Advance(now, outbox);
  EndStarted(now, status, outbox);
}

void CollectiveEngine::EndStarted(absl::Time now, const absl::Status& status, Outbox& outbox) {
  for (const Collective& waiting : std::exchange(started_.collectives, {})) {
    if (waiting.done) waiting.done(now, {.status = status}, outbox);
  }
}

void CollectiveEngine::Wake(absl::Time now, Outbox& outbox) {
  look_again_ = absl::InfiniteFuture();
  Advance(now, outbox);
}

void CollectiveEngine::Advance(absl::Time now, Outbox& outbox) {
  const bool sent = sender_.Advance(outbox, [this](uint64_t number) { runs_.Released(number); });
  if (sent) {
    look_again_ = now;
  } else if (!sender_.in_flight()) {
    look_again_ = absl::InfiniteFuture();
  } else {
    look_again_ = std::min(look_again_, now + kReleasePoll);
  }
  runs_.RunCallbacks(
      now, [this](absl::Duration time) { loss_detector_.CollectiveTook(time); }, outbox);
}

absl::Time CollectiveEngine::deadline() const {
  absl::Time deadline = runs_.deadline();
  for (const Collective& waiting : started_.collectives) {
    deadline = std::min(deadline, waiting.deadline);
  }
  return deadline;
}

std::optional<absl::Status> CollectiveEngine::Overdue(absl::Time now) const {
  if (const CollectiveRun* const run = runs_.Overdue(now); run != nullptr) {
    return DeadlineStatus(*run);
  }
  for (const Collective& waiting : started_.collectives) {
    if (now < waiting.deadline) continue;
    return absl::DeadlineExceededError(
        absl::StrCat(Describe(waiting),
                     ": the members have not all met before the deadline; see `covey status`"));
  }
  return std::nullopt;
}

void CollectiveEngine::BoundDeadlines(absl::Time latest) {
  runs_.BoundDeadlines(latest);
  for (Collective& waiting : started_.collectives) {
    waiting.deadline = std::min(waiting.deadline, latest);
  }
}

absl::Time CollectiveEngine::NextQuery() const {
  if (state_ != State::kRunning || runs_.size() == 0) return absl::InfiniteFuture();
  return loss_detector_.NextQuery();
}

std::set<uint32_t> CollectiveEngine::TakeQueries(absl::Time now) {
  if (now < NextQuery()) return {};
  loss_detector_.Asked(now);
  return runs_.WaitsFor();
}

void CollectiveEngine::ReceiveSlicesSent(uint32_t rank, uint64_t slices) {
  if (!loss_detector_.HasLost(rank, slices)) return;
  host_.RecordLoss(absl::StrCat("slices from ", host_.NameOf(rank), " to ", host_.NameOf(rank_),
                                " were lost with a connection"));
}

std::string CollectiveEngine::Describe(const Collective& collective) const {
  return absl::StrCat(CollectiveName(collective.kind), " ", collective.id.sequence,
                      collective.name.empty() ? "" : " of ", collective.name, " in group ",
                      group_.value());
}

absl::Status CollectiveEngine::Misfit(const CollectiveRun& run, const proto::GroupSlice& slice,
                                      const absl::Status& why) const {
  return absl::InvalidArgumentError(absl::StrCat(
      Describe(run.collective()), ": ", host_.NameOf(slice.from_rank()), " sent ", why.message(),
      " (", slice.count(), " elements from ", slice.first(), "), which does not fit what ",
      host_.NameOf(rank_),
      " started; all members must start the same collectives with the same types and sizes in the "
      "same order"));
}

absl::Status CollectiveEngine::TooFarAhead(uint32_t rank) const {
  return absl::ResourceExhaustedError(absl::StrCat(
      host_.NameOf(rank), " is ahead of others, and ", host_.NameOf(rank_), " keeps more than ",
      kGroupEarlyBytesMax >> 20, " MiB or ", kGroupEarlySlicesMax,
      " slices until they have come; balance the members' batches, use more members, or choose "
      "the ring"));
}

absl::Status CollectiveEngine::DeadlineStatus(const CollectiveRun& run) const {
  std::string waits_for;
  if (const std::vector<uint32_t> ranks = run.WaitsFor(); !ranks.empty()) {
    waits_for = host_.NothingFrom(ranks);
  } else if (run.collective().held) {
    waits_for = absl::StrCat("the own part of ", host_.NameOf(rank_), " was not ready");
  } else {
    const std::vector<NodeId> peers = sender_.peers_in_flight();
    waits_for = absl::StrCat(peers.empty() ? "another member" : host_.NameOf(peers[0]),
                             " did not take what was sent to it");
  }
  return absl::DeadlineExceededError(
      absl::StrCat(Describe(run.collective()), ": ", waits_for,
                   " before the deadline; see `covey status`, or allow more time"));
}

}  // namespace covey::worker
