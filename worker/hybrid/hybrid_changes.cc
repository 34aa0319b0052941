// What HybridMachine does when something is not as usual: a program that is late, and a group whose
// members change.
#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/collective/plan.h"
#include "worker/hybrid/hybrid_machine.h"
#include "worker/update/table_plan.h"

namespace covey::worker {
namespace {

// Buckets are hardly ever more than a step apart.
constexpr size_t kStepsHeardMax = 8;

// Ranks whose values are in what `rank` sends up its tree, its own included.
void AddMembersBehind(const Plan& plan, const Section& section, uint32_t rank,
                      std::vector<uint32_t>& members) {
  for (const uint32_t operand : plan.Reduce(section.owner, section.stripe, rank).operands) {
    if (operand == rank) {
      members.push_back(rank);
    } else {
      AddMembersBehind(plan, section, operand, members);
    }
  }
}

// What members that update have cannot be told to others, nor done again.
absl::Status CannotGoOn(absl::string_view what, Step step) {
  return absl::FailedPreconditionError(
      absl::StrCat(what, " after step ", step.value(),
                   ", and distributed synchronisation keeps values and optimizer state on its ",
                   "members alone; start the run again, from a snapshot if there is one, or use ",
                   "Synchronization::kCentralized, which goes on"));
}

}  // namespace

LatenessRule HybridMachine::Rule() const {
  const proto::Group* group = view_->FindGroup(group_.id());
  if (closed_ || group == nullptr || group->generation() != group_.generation()) return {};
  return {.minimum_members = group->minimum_members(),
          .grace = absl::Milliseconds(group->grace_ms())};
}

void HybridMachine::Notice(absl::Time now, const Message& message, Outbox& outbox) {
  if (flows_.empty() || !message.envelope.has_group_slice() || !Rule().on()) return;
  const proto::GroupSlice& slice = message.envelope.group_slice();
  const uint32_t bucket = (slice.stream() - 1) / 2;
  if (slice.stream() % 2 == 0 || bucket >= flows_.size()) return;
  if (slice.phase() != proto::GroupSlice::REDUCE) return;
  if (ReadRound(slice.round()) != group_.round()) return;
  BucketFlow& flow = *flows_[bucket];
  const Step step(slice.sequence());
  if (step != flow.step().Next() || slice.from_rank() >= group_.size()) return;
  constexpr CollectiveKind kReduce = CollectiveKind::kReduceScatter;
  const size_t elements = flow.bucket().element_count;
  const auto plan = group_.PlanFor(kReduce, EncodedBytes(flow.format(), elements));
  for (const Section& section : SectionsOf(*plan, kReduce, flow.bucket().parts, elements, 0)) {
    const PartRange range = section.range;
    if (slice.first() < range.first || slice.first() >= range.first + range.count) continue;
    std::vector<uint32_t> members;
    AddMembersBehind(*plan, section, slice.from_rank(), members);
    if (slice.samples() == 0) {
      lateness_[bucket].HearNothing(step, members);
      continue;
    }
    lateness_[bucket].Hear(now, step, members);
    any_bucket_[step].Hear(now, step, members);
    if (any_bucket_.size() > kStepsHeardMax) any_bucket_.erase(any_bucket_.begin());
  }
  Wake(now, outbox);
}

absl::Time HybridMachine::AsideAt(size_t bucket, const LatenessRule& rule) const {
  const BucketFlow& flow = *flows_[bucket];
  const Step next = flow.step().Next();
  if (!flow.idle() || !MayBegin(static_cast<uint32_t>(bucket), next)) {
    return absl::InfiniteFuture();
  }
  // The program has gone on to a later step, which the group was at with another bucket.
  if (flow.IsBehind(step_)) return absl::InfinitePast();
  if (!rule.on() || flow.HasSubmitted(next)) return absl::InfiniteFuture();
  const absl::Time due = lateness_[bucket].DueAt(next, rule);
  const auto heard = any_bucket_.find(next);
  if (submitted_ >= next || heard == any_bucket_.end()) return due;
  return std::min(due, heard->second.DueAt(next, rule));
}

absl::Time HybridMachine::Due() const {
  absl::Time due = absl::InfiniteFuture();
  for (const auto& flow : flows_) due = std::min(due, flow->Due());
  return due;
}

void HybridMachine::GiveUpWhatIsDue(absl::Time now, Outbox& outbox) {
  for (const auto& flow : flows_) {
    if (now < flow->Due()) continue;
    group_.Abort(now,
                 absl::DeadlineExceededError(absl::StrCat(
                     flow->name(), " after step ", flow->finished().value(), ": ",
                     forming_ ? "the group still waits for all members to meet as generation "
                              : "others are not over yet, in generation ",
                     group_.generation(), " of group ", group_.id().value(),
                     "; see `covey status`, or allow more time")),
                 outbox);
    // Answers of servers are not waited for either.
    link_.FollowFailure(now, outbox);
    return;
  }
}

void HybridMachine::Wake(absl::Time now, Outbox& outbox) {
  if (MayReform()) Reform(now, outbox);
  if (group_.failure().ok()) GiveUpWhatIsDue(now, outbox);
  if (!group_.failure().ok()) {
    // Nothing will ever begin again.
    for (const auto& flow : flows_) flow->FailWaiting(now, group_.failure(), outbox);
  }
  if (!failure_.ok() || forming_ || !group_.failure().ok()) return;
  const LatenessRule rule = Rule();
  for (size_t b = 0; b < flows_.size(); ++b) {
    if (AsideAt(b, rule) > now) continue;
    if (last_aside_ < flows_[b]->step().Next()) {
      last_aside_ = flows_[b]->step().Next();
      ++steps_aside_;
    }
    flows_[b]->StepAside(now, now + patience_, outbox);
  }
}

absl::Time HybridMachine::NextWake() const {
  if (MayReform()) return absl::InfinitePast();
  absl::Time next = absl::InfiniteFuture();
  if (!group_.failure().ok()) {
    const bool waiting =
        std::any_of(flows_.begin(), flows_.end(), [](const auto& flow) { return flow->waiting(); });
    return waiting ? absl::InfinitePast() : next;
  }
  next = Due();
  if (!failure_.ok() || forming_) return next;
  const LatenessRule rule = Rule();
  for (size_t b = 0; b < flows_.size(); ++b) next = std::min(next, AsideAt(b, rule));
  return next;
}

bool HybridMachine::MayBegin(uint32_t bucket, Step step) const {
  if (forming_ || (cut_ && step > *cut_)) return false;
  if (cut_ && step == flows_[bucket]->finished()) return false;  // a pull
  if (bucket == 0) return true;
  // The first bucket's gather may tell that the step before was the last one.
  const BucketFlow& first = *flows_[0];
  return first.step().Next() >= step &&
         (!group_.change_pending() || first.finished().Next() >= step);
}

void HybridMachine::Changed(absl::Time now, uint32_t bucket, uint64_t seen_epoch, Outbox& outbox) {
  NoteRecovery(now);
  if (bucket != 0) return;
  if (seen_epoch > 0 && !cut_) {
    cut_ = flows_[0]->finished();
    if (options_.synchronization == Synchronization::kDistributed) {
      group_.Abort(
          now,
          CannotGoOn(absl::StrCat("group ", group_.id().value(), " changes its members"), *cut_),
          outbox);
    }
  }
  for (size_t b = 1; b < flows_.size(); ++b) flows_[b]->Advance(now, outbox);
}

bool HybridMachine::MayReform() const {
  if (!cut_ || forming_ || !failure_.ok() || !group_.failure().ok()) return false;
  if (group_.collectives() > 0 || !group_.change_pending()) return false;
  return std::all_of(flows_.begin(), flows_.end(),
                     [this](const auto& flow) { return flow->idle() && flow->step() == *cut_; });
}

void HybridMachine::Reform(absl::Time now, Outbox& outbox) {
  // The group may be ready before Reform returns.
  forming_ = true;
  base_ = *cut_;
  const absl::Status status = group_.Reform(now, cut_->value(), outbox);
  if (status.ok()) return;
  forming_ = false;
  if (absl::IsFailedPrecondition(status)) return;  // Something else is under way: later.
  Left(now, status, outbox);
}

uint64_t HybridMachine::Interrupted(absl::Time now, Outbox& outbox) {
  if (flows_.empty() || !failure_.ok()) return 0;
  Step finished;
  Step begun;
  for (const auto& flow : flows_) {
    finished = std::max(finished, flow->finished());
    begun = std::max(begun, flow->step());
  }
  if (options_.synchronization == Synchronization::kDistributed) {
    group_.Abort(now, CannotGoOn(group_.interruption(), finished), outbox);
    return finished.value();
  }
  forming_ = true;
  base_ = begun;
  cut_.reset();
  if (recovering_since_ == absl::InfiniteFuture()) {
    ++recoveries_;
    recovering_since_ = now;
    to_recover_.assign(flows_.size(), Step());
  }
  for (size_t b = 0; b < flows_.size(); ++b) {
    to_recover_[b] = flows_[b]->step();
    flows_[b]->Interrupt();
  }
  return finished.value();
}

MemberProgress HybridMachine::Progress() const {
  MemberProgress progress;
  for (const auto& flow : flows_) {
    BucketProgress& bucket = progress.emplace_back();
    bucket.finished = flow->finished();
    bucket.pulls = flow->pulls();
    bucket.waits_for_pull = flow->pulling();
    if (flow->knows_rounds()) bucket.rounds = RoundProgress{.learned = flow->rounds_known()};
  }
  return progress;
}

HybridMachine::Standing HybridMachine::StandingOf(size_t bucket) const {
  Standing standing;
  const BucketProgress* first = nullptr;
  for (const MemberProgress& member : group_.recovery_state()) {
    if (bucket >= member.size()) {
      standing.even = false;  // It is new.
      continue;
    }
    const BucketProgress& progress = member[bucket];
    standing.finished = std::max(standing.finished, progress.finished);
    standing.pulls = std::max(standing.pulls, progress.pulls);
    // It waits for a pull, or has finished another step or pull than the others.
    if (first == nullptr) first = &progress;
    if (progress.waits_for_pull || progress.finished != first->finished ||
        progress.pulls != first->pulls) {
      standing.even = false;
    }
  }
  // Members of another group have made a new one.
  if (standing.finished < Step(group_.steps_before())) {
    standing.finished = Step(group_.steps_before());
    standing.even = false;
  }
  Step most;
  for (uint32_t rank = 0; rank < group_.recovery_state().size(); ++rank) {
    const MemberProgress& member = group_.recovery_state()[rank];
    if (bucket >= member.size() || !member[bucket].rounds) continue;
    const Step learned = member[bucket].rounds->learned;
    if (standing.heir_of && learned <= most) continue;
    most = learned;
    standing.heir_of = rank;
  }
  return standing;
}

void HybridMachine::NoteRecovery(absl::Time now) {
  if (forming_ || recovering_since_ == absl::InfiniteFuture()) return;
  for (size_t b = 0; b < flows_.size(); ++b) {
    if (flows_[b]->finished() < to_recover_[b]) return;
  }
  recovery_time_ = now - std::exchange(recovering_since_, absl::InfiniteFuture());
}

void HybridMachine::GroupReady(absl::Time now, Outbox& outbox) {
  if (!forming_) return;
  const absl::Status adopted =
      group_.recovery_state().empty() ? Adopt(now, outbox) : Rejoin(now, outbox);
  forming_ = false;
  if (!adopted.ok()) group_.Abort(now, adopted, outbox);
  for (const auto& flow : flows_) flow->Advance(now, outbox);
  NoteRecovery(now);
}

absl::Status HybridMachine::Adopt(absl::Time now, Outbox& outbox) {
  COVEY_ASSIGN_OR_RETURN(const auto tables, FindTables());
  COVEY_ASSIGN_OR_RETURN(const auto plans, PlanTables(tables, *view_, options_));
  layout_ = LayoutOf(tables, plans, group_.size(), options_.fusion);
  const Step agreed(group_.agreed_step());
  Relabel(agreed);
  last_aside_ = agreed;
  for (size_t b = 0; b < flows_.size(); ++b) {
    const Bucket& bucket = layout_->buckets()[b];
    COVEY_ASSIGN_OR_RETURN(auto update, MakeUpdate(bucket, tables, plans, group_, link_));
    flows_[b]->Adopt(bucket, std::move(update), agreed);
  }
  // One bucket's pull may be over at once: nothing begins before all buckets have pulled.
  for (const auto& flow : flows_) flow->PullAnew(now, now + patience_, outbox);
  return absl::OkStatus();
}

// What the program is in or has given of later steps is for those after `agreed`; it may have begun
// two of them.
void HybridMachine::Relabel(Step agreed) {
  const auto relabel = [&](Step step) {
    return Step(agreed.value() + (step > base_ ? step.value() - base_.value() : 0));
  };
  step_ = relabel(step_);
  submitted_ = relabel(submitted_);
  any_bucket_.clear();
  cut_.reset();
  lateness_.assign(flows_.size(), Lateness());
}

absl::Status HybridMachine::Rejoin(absl::Time now, Outbox& outbox) {
  COVEY_ASSIGN_OR_RETURN(const auto tables, FindTables());
  COVEY_ASSIGN_OR_RETURN(const auto plans, PlanTables(tables, *view_, options_));
  layout_ = LayoutOf(tables, plans, group_.size(), options_.fusion);
  std::vector<Standing> standings;
  Step agreed;
  bool moved = false;
  for (size_t b = 0; b < flows_.size(); ++b) {
    standings.push_back(StandingOf(b));
    agreed = std::max(agreed, standings[b].finished);
    // Nobody of the same group finishes what this member has not begun.
    moved = moved || standings[b].finished > flows_[b]->step();
  }
  if (moved) to_recover_.assign(flows_.size(), Step());
  Relabel(moved ? agreed : base_);
  for (size_t b = 0; b < flows_.size(); ++b) {
    const Bucket& bucket = layout_->buckets()[b];
    COVEY_ASSIGN_OR_RETURN(auto update, MakeUpdate(bucket, tables, plans, group_, link_));
    const Standing& standing = standings[b];
    flows_[b]->Rejoin(
        now,
        {.bucket = bucket,
         .update = std::move(update),
         .step = standing.finished,
         .moved = moved,
         .base = base_,
         .agreed = agreed,
         // A part that members update has to be fetched by whoever answers for it now.
         .pull = !standing.even || plans[bucket.position()].owned.has_value(),
         .owed = standing.pulls - std::min(standing.pulls, flows_[b]->pulls()),
         .heir_of = standing.heir_of,
         .deadline = now + patience_},
        outbox);
  }
  return absl::OkStatus();
}

void HybridMachine::Left(absl::Time now, const absl::Status& status, Outbox& outbox) {
  failure_ = absl::IsCancelled(status) ? status : absl::AbortedError(status.message());
  forming_ = false;
  recovering_since_ = absl::InfiniteFuture();
  // Should this worker be in a group again, it begins as a new one.
  const std::vector<std::shared_ptr<BucketFlow>> flows = std::exchange(flows_, {});
  for (const auto& flow : flows) {
    flow->Retire();
    flow->GiveUp(now, failure_, outbox);
  }
}

void HybridMachine::SetView(absl::Time now, std::shared_ptr<const ClusterView> view,
                            Outbox& outbox) {
  view_ = std::move(view);
  Wake(now, outbox);
}

}  // namespace covey::worker
