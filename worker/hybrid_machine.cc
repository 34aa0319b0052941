#include "worker/hybrid_machine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "worker/table_plan.h"

namespace covey::worker {
namespace {

std::string NameOf(const Bucket& bucket, std::span<const proto::Table* const> tables) {
  const std::string& first = tables[bucket.position()]->spec().name();
  if (bucket.pieces.size() == 1) return absl::StrCat("'", first, "'");
  return absl::StrCat("'", first, "' and ", bucket.pieces.size() - 1, " others");
}

}  // namespace

absl::Status HybridMachine::SetTables(const ClusterView& view, std::span<const TableId> tables,
                                      const HybridOptions& options) {
  COVEY_CHECK(group_.formed() && options.lag <= 1);
  std::vector<const proto::Table*> found;
  for (const TableId id : tables) {
    found.push_back(view.FindTable(id));
    if (found.back() == nullptr) {
      return absl::NotFoundError(absl::StrCat("table ", id.value(), " is not in the view of epoch ",
                                              view.epoch().value(), "; create it first"));
    }
  }
  COVEY_ASSIGN_OR_RETURN(std::vector<TablePlan> plans, PlanTables(found, view, options));
  std::vector<uint64_t> kinds;
  for (const TablePlan& plan : plans) kinds.push_back(plan.kind());
  layout_ = std::make_unique<ModelLayout>(found, group_.size(), options.fusion, kinds);
  for (const auto& flow : flows_) pulls_ = std::max(pulls_, flow->pulls());
  flows_.clear();
  for (const Bucket& bucket : layout_->buckets()) {
    const TablePlan& plan = plans[bucket.position()];
    BucketFlow::Config config{.bucket = bucket,
                              .number = static_cast<uint32_t>(flows_.size()),
                              .name = NameOf(bucket, found),
                              .format = plan.format,
                              .error_feedback = plan.error_feedback,
                              .lag = options.lag,
                              .step = step_,
                              .pulls = pulls_};
    COVEY_ASSIGN_OR_RETURN(config.update, MakeUpdate(bucket, found, plans, group_, link_));
    flows_.push_back(std::make_shared<BucketFlow>(group_, link_, std::move(config)));
  }
  return absl::OkStatus();
}

void HybridMachine::BeginStep(absl::Time, Outbox&) { step_ = step_.Next(); }

void HybridMachine::Submit(absl::Time now, Work work, Outbox& outbox) {
  COVEY_CHECK(work.gradient.size() == element_count(work.tensor) &&
              work.values.size() == work.gradient.size() && step_.value() > 0);
  BucketFlow& flow = FlowOf(work.tensor);
  flow.Submit(now, step_, std::move(work), outbox);
}

void HybridMachine::Pull(absl::Time now, Work work, Outbox& outbox) {
  BucketFlow& flow = FlowOf(work.tensor);
  flow.Pull(now, std::move(work), outbox);
}

void HybridMachine::Flush(absl::Time now, Work work, Outbox& outbox) {
  BucketFlow& flow = FlowOf(work.tensor);
  flow.Flush(now, std::move(work), outbox);
}

}  // namespace covey::worker
