// SPDX-License-Identifier: Apache-2.0
#include "worker/group/group_machine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "common/base/planted_bug.h"
#include "common/collective/cost_model.h"
#include "common/net/frame_checksum.h"
#include "common/net/message.h"

namespace covey::worker {
namespace {

// How soon to look again whether the transport has let frames go.
constexpr absl::Duration kReleasePoll = absl::Microseconds(200);
// Sizes whose algorithm is remembered; a model has fewer tensors.
constexpr size_t kChoicesMax = 4096;

}  // namespace

GroupMachine::GroupMachine(const Options& options) : options_(options) {
  COVEY_CHECK(options.slice_bytes > 0 && options.slice_bytes % sizeof(float) == 0);
}

GroupMachine::~GroupMachine() = default;

Algorithm GroupMachine::AlgorithmOf(const Collective& collective) {
  if (collective.algorithm != Algorithm::kAutomatic) return collective.algorithm;
  return AlgorithmFor(collective.kind, EncodedBytes(collective.format, collective.data.size()));
}

Algorithm GroupMachine::AlgorithmFor(CollectiveKind kind, size_t bytes) {
  if (options_.algorithm != Algorithm::kAutomatic) return options_.algorithm;
  if (size_ == 1) return Algorithm::kRing;
  const std::pair key(kind, bytes);
  const auto known = choices_.find(key);
  if (known != choices_.end()) return known->second;
  if (choices_.size() >= kChoicesMax) choices_.clear();
  return choices_[key] = ChooseAlgorithm(kind, bytes, paths(), link_costs()).algorithm;
}

std::shared_ptr<const Plan> GroupMachine::PlanOf(Algorithm algorithm) {
  std::shared_ptr<const Plan>& plan = plans_[algorithm];
  if (plan == nullptr) {
    plan = std::make_shared<const Plan>(
        PlanOptions{.algorithm = algorithm, .size = size_, .paths = paths()});
  }
  return plan;
}

void GroupMachine::Start(absl::Time now, Collective collective, Outbox& outbox) {
  COVEY_CHECK(formed() && collective.root < size_);
  COVEY_CHECK(collective.kind == CollectiveKind::kBroadcast ||
              collective.kind == CollectiveKind::kBarrier || collective.parts.size() == size_);
  for (const PartRange& part : collective.parts) {
    COVEY_CHECK(part.first <= collective.data.size() &&
                part.count <= collective.data.size() - part.first);
  }
  uint64_t& last = last_started_[collective.id.stream];
  COVEY_CHECK(collective.id.sequence > last);
  last = collective.id.sequence;
  if (!failure_.ok()) {
    if (collective.done) collective.done(now, {.status = failure_}, outbox);
    return;
  }
  if (!ready()) {
    waiting_.push_back(std::move(collective));
    return;
  }
  Begin(now, std::move(collective), outbox);
  Advance(now, outbox);
}

void GroupMachine::Begin(absl::Time now, Collective collective, Outbox& outbox) {
  const uint64_t number = ++last_number_;
  const CollectiveId id = collective.id;
  const std::shared_ptr<const Plan> plan = PlanOf(AlgorithmOf(collective));
  const bool tells = change_pending() && !collective.hides_plans;
  const uint64_t seen_epoch = tells ? view().epoch().value() : 0;
  auto& run = *runs_
                   .emplace(number, std::make_unique<CollectiveRun>(
                                        number, std::move(collective), plan,
                                        CollectiveRun::Options{
                                            .rank = rank_,
                                            .slice_elements = options_.slice_bytes / sizeof(float),
                                            .seen_epoch = seen_epoch}))
                   .first->second;
  numbers_[id] = number;
  changed_.push_back(number);
  run.began = now;
  loss_detector_.CollectiveBegan(now);
  run.Begin();
  for (const Message& message : early_.Take(id)) {
    if (IsUnderWay(number)) Apply(now, run, message, outbox);
  }
  if (IsUnderWay(number)) QueueSayings(run, outbox);
}

// It has not ended meanwhile, with the group or its formation.
bool GroupMachine::IsUnderWay(uint64_t number) const {
  const auto found = runs_.find(number);
  return failure_.ok() && found != runs_.end() && !found->second->abandoned;
}

void GroupMachine::Contribute(absl::Time now, const CollectiveId& id,
                              const Contribution& contribution, Outbox& outbox) {
  Release(now, id, &contribution, outbox);
}

void GroupMachine::Contribute(absl::Time now, const CollectiveId& id, Outbox& outbox) {
  Release(now, id, nullptr, outbox);
}

void GroupMachine::Release(absl::Time now, const CollectiveId& id, const Contribution* contribution,
                           Outbox& outbox) {
  if (!failure_.ok()) return;
  for (Collective& waiting : waiting_) {
    if (waiting.id != id) continue;
    // What came before the group was ready knows of no newer plan than the group itself will.
    waiting.held = false;
    if (contribution != nullptr) waiting.samples = contribution->samples;
    return;
  }
  const auto found = numbers_.find(id);
  if (found == numbers_.end()) return;
  CollectiveRun& run = *runs_.at(found->second);
  if (contribution != nullptr) {
    run.Contribute(contribution->samples, contribution->seen_epoch);
  } else {
    run.Contribute(run.collective().samples, run.own_epoch());
  }
  QueueSayings(run, outbox);
  changed_.push_back(run.number());
  Advance(now, outbox);
}

void GroupMachine::QueueSayings(CollectiveRun& run, Outbox& outbox) {
  for (CollectiveRun::Saying& saying : run.TakeSayings()) {
    SliceSender::Item item{.collective = run.number(),
                           .peer = members_[saying.peer],
                           .priority = run.collective().priority};
    item.message.set_to(AddressOf(saying.peer));
    WriteRound(round(), *saying.slice.mutable_round());
    *item.message.envelope.mutable_group_slice() = std::move(saying.slice);
    if (!saying.frame.empty()) AddFrame(item.message, std::move(saying.frame), saying.checksum);
    ++run.frames_out;
    EnsureRoute(saying.peer, outbox);
    sender_.Queue(std::move(item));
  }
}

bool GroupMachine::Receive(absl::Time now, const Message& message, Outbox& outbox) {
  const std::optional<GroupSender> sender = SenderOf(message);
  if (!sender) return false;
  if (!failure_.ok()) return true;
  const GroupRound& round = sender->round;
  const bool same_group = formed() && round.group == id_;
  const bool stale = Planted(PlantedBug::kStaleGroupGeneration) && same_group &&
                     round.generation < generation_ && message.envelope.has_group_slice();
  if (!same_group || (round.generation != generation_ && !stale)) {
    // The sender may be a stranger, which must not fail anything.
    if (!MayBeNext(round)) {
      TellSuperseded(message, round, outbox);
    } else if (before_forming_.HasRoom(message, 0)) {
      before_forming_.Keep({}, message);
    }
    return true;
  }
  // A member that gives up does so for good, in whichever round.
  if (sender->rank && !stale && !FollowAttempt(now, message, *sender, outbox)) return true;
  if (message.envelope.has_group_slice()) {
    ReceiveSlice(now, message, outbox);
  } else if (message.envelope.has_group_abort()) {
    ReceiveAbort(now, message, outbox);
  } else if (message.envelope.has_group_hello()) {
    ReceiveHello(now, message, outbox);
  } else {
    ReceiveProbe(now, message, outbox);
  }
  Advance(now, outbox);
  return true;
}

void GroupMachine::ReceiveSlice(absl::Time now, const Message& message, Outbox& outbox) {
  const proto::GroupSlice& slice = message.envelope.group_slice();
  if (slice.from_rank() == rank_ || !IsMember(message, slice.from_rank())) return;
  loss_detector_.SliceCame(now, slice.from_rank());
  const CollectiveId id{.stream = slice.stream(), .sequence = slice.sequence()};
  const auto found = numbers_.find(id);
  if (found != numbers_.end()) {
    const uint64_t number = found->second;
    Apply(now, *runs_.at(number), message, outbox);
    if (IsUnderWay(number)) QueueSayings(*runs_.at(number), outbox);
    return;
  }
  const auto last = last_started_.find(id.stream);
  // They may have been started and still wait for the group to be ready.
  const bool over = ready() && last != last_started_.end() && id.sequence <= last->second;
  if (over) return;
  if (early_.HasRoom(message, waiting_bytes_)) {
    early_.Keep(id, message);
  } else {
    Abort(now, TooFarAhead(slice.from_rank()), outbox);
  }
}

void GroupMachine::ReceiveAbort(absl::Time now, const Message& message, Outbox& outbox) {
  for (uint32_t rank = 0; rank < size_; ++rank) {
    if (rank == rank_ || !IsMember(message, rank)) continue;
    const bool superseded = message.envelope.group_abort().superseded();
    if (superseded && ready()) {
      member_went_over_ = true;
      if (plan_.Decide(Situation()).kind == PlanFollower::Decision::Kind::kInterrupt) {
        Recover(now, outbox);
      }
      return;
    }
    // Members of a group that has run before go on without a member that gives up before they meet.
    if (superseded || (!ready() && has_been_ready_)) {
      SupersedeGeneration(now, outbox);
      return;
    }
    Fail(now,
         absl::UnavailableError(
             absl::StrCat(NameOf(rank), " gave up: ", message.envelope.group_abort().reason())),
         outbox);
    return;
  }
}

void GroupMachine::Apply(absl::Time now, CollectiveRun& run, const Message& message,
                         Outbox& outbox) {
  const proto::GroupSlice& slice = message.envelope.group_slice();
  const size_t before = run.waiting_bytes();
  const absl::Status taken = run.Take(message);
  waiting_bytes_ += run.waiting_bytes() - before;
  changed_.push_back(run.number());
  if (absl::IsUnavailable(taken) || absl::IsDataLoss(taken)) {
    RecordLoss(absl::StrCat(Describe(run.collective()), ": slices from ", NameOf(slice.from_rank()),
                            " to ", NameOf(rank_),
                            absl::IsDataLoss(taken)
                                ? absl::StrCat(" were damaged: ", taken.message())
                                : " were lost with a connection"));
  } else if (!taken.ok()) {
    Abort(now,
          absl::InvalidArgumentError(absl::StrCat(
              Describe(run.collective()), ": ", NameOf(slice.from_rank()), " sent ",
              taken.message(), " (", slice.count(), " elements from ", slice.first(),
              "), which does not fit what ", NameOf(rank_),
              " started; all members must start the same collectives with the same sizes in the "
              "same order")),
          outbox);
  } else if (early_.bytes() + waiting_bytes_ > kGroupEarlyBytesMax) {
    Abort(now, TooFarAhead(slice.from_rank()), outbox);
  }
}

absl::Status GroupMachine::TooFarAhead(uint32_t rank) const {
  return absl::ResourceExhaustedError(absl::StrCat(
      NameOf(rank), " is ahead of others, and ", NameOf(rank_), " keeps more than ",
      kGroupEarlyBytesMax >> 20, " MiB or ", kGroupEarlySlicesMax,
      " slices until they have come; balance the members' batches, use more members, or choose "
      "the ring"));
}

void GroupMachine::Abort(absl::Time now, const absl::Status& status, Outbox& outbox) {
  if (!formed() || !failure_.ok()) return;
  Fail(now, status, outbox);
  for (uint32_t rank = 0; rank < size_; ++rank) {
    if (rank == rank_) continue;
    outbox.Route(AddressOf(rank), view().EndpointOf(AddressOf(rank)));
    Message message;
    message.set_to(AddressOf(rank));
    proto::GroupAbort& abort = *message.envelope.mutable_group_abort();
    WriteRound(round(), *abort.mutable_round());
    const absl::string_view reason = status.message().substr(0, kStatusMessageBytesMax);
    abort.set_reason(std::string(reason));
    outbox.Send(std::move(message));
  }
}

void GroupMachine::Fail(absl::Time now, absl::Status status, Outbox& outbox) {
  if (!failure_.ok()) return;
  failure_ = std::move(status);
  sender_.CancelQueued([this](uint64_t number) { Released(number); });
  // With the connection go the frames that wait in it for a peer that may never take them.
  for (const NodeId node : sender_.peers_in_flight()) outbox.Route({node, 0}, "");
  early_.Clear();
  before_forming_.Clear();
  for (const auto& [number, run] : runs_) changed_.push_back(number);
  Advance(now, outbox);
  for (const Collective& waiting : std::exchange(waiting_, {})) {
    if (waiting.done) waiting.done(now, {.status = failure_}, outbox);
  }
}

void GroupMachine::Stop(absl::Time now, const absl::Status& status, Outbox& outbox) {
  stopped_ = status;
  sender_.CancelQueued([this](uint64_t number) { Released(number); });
  // Frames in the transport serve no member any more; the next message opens the connection.
  for (const NodeId node : sender_.peers_in_flight()) {
    outbox.Route({node, 0}, "");
    routes_.erase(node);
  }
  early_.Clear();
  for (const auto& [number, run] : runs_) {
    if (run->abandoned) continue;
    run->abandoned = true;
    ++abandoned_;
    numbers_.erase(run->collective().id);
    // Members of one process hold each other's frames.
    waiting_bytes_ -= run->waiting_bytes();
    run->Stop();
    changed_.push_back(number);
  }
  Advance(now, outbox);
  for (const Collective& waiting : std::exchange(waiting_, {})) {
    if (waiting.done) waiting.done(now, {.status = status}, outbox);
  }
}

void GroupMachine::Advance(absl::Time now, Outbox& outbox) {
  sender_.Advance(outbox, [this](uint64_t number) { Released(number); });
  look_again_ = sender_.in_flight() ? now + kReleasePoll : absl::InfiniteFuture();
  RunCallbacks(now, outbox);
}

void GroupMachine::Released(uint64_t number) {
  // The run is still there: it waits for this frame.
  --runs_.at(number)->frames_out;
  changed_.push_back(number);
}

void GroupMachine::RunCallbacks(absl::Time now, Outbox& outbox) {
  // A callback may start collectives and so come back here; what it finds is consistent.
  while (!changed_.empty()) {
    const auto found = runs_.find(changed_.front());
    changed_.pop_front();
    if (found == runs_.end()) continue;
    CollectiveRun& run = *found->second;
    const bool failed = !failure_.ok();
    if (!failed && !run.abandoned && run.arrived() && !run.told_arrived) {
      run.told_arrived = true;
      loss_detector_.CollectiveTook(now - run.began);
      changed_.push_back(run.number());
      const Collective::Callback arrived = std::move(run.collective().arrived);
      if (arrived) arrived(now, run.result(), outbox);
      continue;
    }
    if (run.frames_out > 0 || !(failed || run.told_arrived || run.abandoned)) continue;
    const std::unique_ptr<CollectiveRun> over = std::move(found->second);
    runs_.erase(found);
    if (over->abandoned) {
      --abandoned_;
    } else {
      numbers_.erase(over->collective().id);
    }
    waiting_bytes_ -= over->waiting_bytes();
    CollectiveResult result = over->result();
    if (!over->told_arrived) result = {.status = over->abandoned ? stopped_ : failure_};
    if (over->collective().done) over->collective().done(now, result, outbox);
  }
}

void GroupMachine::Wake(absl::Time now, Outbox& outbox) {
  if (failure_.ok()) {
    for (const auto& [number, run] : runs_) {
      if (run->abandoned || now < run->collective().deadline) continue;
      if (plan_.FirstLostMember() != nullptr) return Recover(now, outbox);
      Abort(now, DeadlineStatus(*run), outbox);
      return;
    }
    for (const Collective& waiting : waiting_) {
      if (now < waiting.deadline) continue;
      if (plan_.FirstLostMember() != nullptr) return Recover(now, outbox);
      Abort(now,
            absl::DeadlineExceededError(absl::StrCat(
                Describe(waiting),
                ": the members have not all met before the deadline; see `covey status`")),
            outbox);
      return;
    }
    if (now >= rendezvous_.deadline()) {
      if (plan_.FirstLostMember() != nullptr) return Recover(now, outbox);
      Abort(now, MeetingDeadlineStatus(), outbox);
      return;
    }
    if (now >= rendezvous_by_) {
      Abort(now,
            absl::DeadlineExceededError(absl::StrCat("generation ", generation_, " of group ",
                                                     id_.value(), ": the members have not met ",
                                                     "before the deadline; see `covey status`")),
            outbox);
      return;
    }
    if (now >= rendezvous_.retry_at()) {
      RecordLoss("what the members told each other while they met was lost");
    }
    if (!loss_.empty()) RetryRendezvous(now, std::exchange(loss_, ""), outbox);
    LookForLosses(now, outbox);
    if (formed() && !ready()) {
      rendezvous_.Wake(now);
      FollowRendezvous(now, outbox);
    }
  }
  Advance(now, outbox);
}

absl::Time GroupMachine::NextWake() const {
  absl::Time next = look_again_;
  if (!failure_.ok()) return next;
  if (!loss_.empty()) return absl::InfinitePast();
  for (const auto& [number, run] : runs_) {
    if (!run->abandoned) next = std::min(next, run->collective().deadline);
  }
  next =
      std::min({next, rendezvous_.deadline(), rendezvous_by_, rendezvous_.retry_at(), NextQuery()});
  for (const Collective& waiting : waiting_) next = std::min(next, waiting.deadline);
  return std::min(next, rendezvous_.NextWake());
}

std::string GroupMachine::Describe(const Collective& collective) const {
  return absl::StrCat(CollectiveName(collective.kind), " ", collective.id.sequence,
                      collective.name.empty() ? "" : " of ", collective.name, " in group ",
                      id_.value());
}

std::string GroupMachine::NothingFrom(std::vector<uint32_t> ranks) const {
  constexpr size_t kNamesMax = 3;
  const size_t more = ranks.size() - std::min(ranks.size(), kNamesMax);
  ranks.resize(ranks.size() - more);
  const auto name = [this](std::string* out, uint32_t rank) {
    const proto::Node* node = view().FindNode(members_[rank]);
    const bool left = node != nullptr && node->state() == proto::Node::LEFT;
    absl::StrAppend(out, NameOf(rank), left ? ", which has left" : "");
  };
  return absl::StrCat("nothing from ", absl::StrJoin(ranks, " and ", name),
                      more > 0 ? absl::StrCat(" and ", more, " more") : "");
}

absl::Status GroupMachine::MeetingDeadlineStatus() const {
  return absl::DeadlineExceededError(
      absl::StrCat("generation ", generation_, " of group ", id_.value(), ": ",
                   NothingFrom(rendezvous_.Missing()),
                   " before the deadline of the members' meeting; see `covey status`"));
}

absl::Status GroupMachine::DeadlineStatus(const CollectiveRun& run) const {
  std::string waits_for;
  if (const std::vector<uint32_t> ranks = run.WaitsFor(); !ranks.empty()) {
    waits_for = NothingFrom(ranks);
  } else if (run.collective().held) {
    waits_for = absl::StrCat("the own part of ", NameOf(rank_), " was not ready");
  } else {
    const std::vector<NodeId> peers = sender_.peers_in_flight();
    waits_for = absl::StrCat(peers.empty() ? "another member" : view().NameOf(peers[0]),
                             " did not take what was sent to it");
  }
  return absl::DeadlineExceededError(
      absl::StrCat(Describe(run.collective()), ": ", waits_for,
                   " before the deadline; see `covey status`, or allow more time"));
}

}  // namespace covey::worker
