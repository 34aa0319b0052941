#include "worker/hybrid/hybrid_machine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "worker/update/table_plan.h"

namespace covey::worker {
namespace {

std::string NameOf(const Bucket& bucket, std::span<const proto::Table* const> tables) {
  const std::string& first = tables[bucket.position()]->spec().name();
  if (bucket.pieces.size() == 1) return absl::StrCat("'", first, "'");
  return absl::StrCat("'", first, "' and ", bucket.pieces.size() - 1, " others");
}

}  // namespace

HybridMachine::~HybridMachine() {
  for (const auto& flow : flows_) flow->Retire();
}

absl::StatusOr<std::vector<const proto::Table*>> HybridMachine::FindTables() const {
  std::vector<const proto::Table*> found;
  for (const TableId id : tables_) {
    found.push_back(view_->FindTable(id));
    if (found.back() == nullptr) {
      return absl::NotFoundError(absl::StrCat("table ", id.value(), " is not in the view of epoch ",
                                              view_->epoch().value(), "; create it first"));
    }
  }
  return found;
}

absl::Status HybridMachine::SetTables(std::span<const TableId> tables, const HybridOptions& options,
                                      absl::Duration patience) {
  COVEY_CHECK(group_.ready() && options.lag <= 1);
  tables_.assign(tables.begin(), tables.end());
  options_ = options;
  patience_ = patience;
  COVEY_ASSIGN_OR_RETURN(const auto found, FindTables());
  COVEY_ASSIGN_OR_RETURN(const auto plans, PlanTables(found, *view_, options));
  layout_ = LayoutOf(found, plans, group_.size(), options.fusion);
  // A worker that joins a running group goes on with the group's steps.
  const Step own = flows_.empty() ? Step() : step_;
  step_ = std::max(own, Step(group_.agreed_step()));
  // It may come to a group whose buckets are not at the same step.
  const bool joins = flows_.empty() && !group_.recovery_state().empty();
  uint64_t pulls = 0;
  for (const auto& flow : flows_) {
    pulls = std::max(pulls, flow->pulls());
    flow->Retire();
  }
  flows_.clear();
  for (const Bucket& bucket : layout_->buckets()) {
    const TablePlan& plan = plans[bucket.position()];
    BucketFlow::Config config{.bucket = bucket,
                              .number = static_cast<uint32_t>(flows_.size()),
                              .name = NameOf(bucket, found),
                              .format = plan.format,
                              .error_feedback = plan.error_feedback,
                              .lag = options.lag,
                              .memory = MakeRoundMemory(bucket, plans)};
    Standing standing;
    if (joins) standing = StandingOf(flows_.size());
    config.heir_of = standing.heir_of;
    COVEY_ASSIGN_OR_RETURN(config.update, MakeUpdate(bucket, found, plans, group_, link_));
    flows_.push_back(std::make_shared<BucketFlow>(
        group_, link_, std::move(config),
        BucketFlow::Environment{
            .may_begin = [this](uint32_t number, Step step) { return MayBegin(number, step); },
            .changed = [this](absl::Time now, uint32_t number, uint64_t seen_epoch,
                              Outbox& outbox) { Changed(now, number, seen_epoch, outbox); }},
        joins ? standing.finished : step_, pulls));
  }
  lateness_.assign(flows_.size(), Lateness());
  any_bucket_.clear();
  last_aside_ = step_;
  submitted_ = step_;
  cut_.reset();
  failure_ = absl::OkStatus();
  closed_ = false;
  recovering_since_ = absl::InfiniteFuture();
  return absl::OkStatus();
}

Step HybridMachine::step() const {
  Step newest = step_;
  for (const auto& flow : flows_) newest = std::max(newest, flow->step());
  return newest;
}

void HybridMachine::BeginStep(absl::Time now, Outbox& outbox) {
  step_ = step().Next();
  Wake(now, outbox);
}

void HybridMachine::Submit(absl::Time now, Work work, Outbox& outbox) {
  COVEY_CHECK(work.gradient.size() == element_count(work.tensor) &&
              work.values.size() == work.gradient.size() && step_.value() > 0);
  if (!failure_.ok()) return work.done(now, failure_, outbox);
  BucketFlow& flow = FlowOf(work.tensor);
  if (flow.step() < step_) submitted_ = step_;
  flow.Submit(now, step_, std::move(work), outbox);
}

void HybridMachine::Pull(absl::Time now, Work work, Outbox& outbox) {
  if (!failure_.ok()) return work.done(now, failure_, outbox);
  FlowOf(work.tensor).Pull(now, std::move(work), outbox);
}

void HybridMachine::Flush(absl::Time now, Work work, Outbox& outbox) {
  if (!failure_.ok()) return work.done(now, failure_, outbox);
  FlowOf(work.tensor).Flush(now, std::move(work), outbox);
}

}  // namespace covey::worker
