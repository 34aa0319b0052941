// SPDX-License-Identifier: Apache-2.0
#include "worker/hybrid/hybrid_model.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace covey::worker {
namespace {

std::string NameOf(const Bucket& bucket, const ModelPlan& plan) {
  const std::string& first = plan.tables[bucket.position()]->spec().name();
  if (bucket.pieces.size() == 1) return absl::StrCat("'", first, "'");
  return absl::StrCat("'", first, "' and ", bucket.pieces.size() - 1, " others");
}

}  // namespace

absl::Status HybridModel::Set(Definition definition, std::shared_ptr<const ClusterView> view,
                              Step step, const BucketPipeline::Environment& environment) {
  definition_ = std::move(definition);
  COVEY_RETURN_IF_ERROR(Divide(std::move(view)));
  const bool joins = empty() && !group_.recovery_state().empty();
  uint64_t pulls = 0;
  for (const auto& pipeline : TakePipelines()) pulls = std::max(pulls, pipeline->pulls());
  const double norm_max = definition_.options.max_gradient_norm;
  clip_ = norm_max > 0 ? std::make_shared<GradientClip>(group_, norm_max) : nullptr;
  if (!definition_.options.measure_noise) {
    noise_ = nullptr;
  } else if (noise_ == nullptr) {  // Else the program may wait for what it has.
    noise_ = std::make_shared<NoiseMeter>(group_);
  }
  std::vector<Step> finished;
  for (const Bucket& bucket : layout().buckets()) {
    const size_t number = pipelines_.size();
    const TablePlan& table = plan_.plans[bucket.position()];
    BucketConsensus consensus{.finished = step};
    if (joins) consensus = ConsensusOn(number);
    finished.push_back(consensus.finished);
    BucketPipeline::Config config{
        .bucket = bucket,
        .number = static_cast<uint32_t>(number),
        .name = NameOf(bucket, plan_),
        .gradient = table.gradient,
        .value_format = table.value_format,
        .lag = definition_.options.lag,
        .combine = definition_.options.combine,
        .clip = clip_,
        .noise = noise_,
        .memory = MakeRoundMemory(bucket, plan_.plans),
        .mean = ProgramUpdates() ? std::optional(MeanMemory()) : std::nullopt,
        .recovery_donor = consensus.recovery_donor,
        .step = consensus.finished,
        .pulls = pulls};
    COVEY_ASSIGN_OR_RETURN(config.update, MakeUpdateOf(number));
    pipelines_.push_back(
        std::make_shared<BucketPipeline>(group_, link_, std::move(config), environment));
  }
  BeginGeneration(finished, joins ? NormOf(finished) : std::nullopt);
  return absl::OkStatus();
}

absl::Status HybridModel::SetFusion(const FusionLimits& fusion,
                                    std::shared_ptr<const ClusterView> view, Step step,
                                    const BucketPipeline::Environment& environment) {
  const std::optional<GradientNorm> norm = clip_ == nullptr ? std::nullopt : clip_->newest();
  Definition definition = definition_;
  definition.options.fusion = fusion;
  COVEY_RETURN_IF_ERROR(Set(std::move(definition), std::move(view), step, environment));
  BeginGeneration(std::vector<Step>(pipelines_.size(), step), norm);
  return absl::OkStatus();
}

std::vector<StepTuning::Layout> HybridModel::TunableLayouts() const {
  std::vector<StepTuning::Layout> layouts{
      {.fusion = definition_.options.fusion, .buckets = pipelines_.size()}};
  std::vector<FusionKind> kinds;
  // Only a program's means belong to one step alone, and to a group that takes in nobody.
  bool may_change = ProgramUpdates();
  for (const TablePlan& plan : plan_.plans) {
    kinds.push_back(plan.kind());
    may_change = may_change && !plan.gradient.error_feedback;
  }
  if (!may_change) return layouts;
  for (const FusionLimits& fusion : FusionCandidates()) {
    const ModelLayout layout(plan_.tables, group_.size(), fusion, kinds);
    const size_t buckets = layout.buckets().size();
    const bool is_new = std::none_of(
        layouts.begin(), layouts.end(),
        [buckets](const StepTuning::Layout& other) { return other.buckets == buckets; });
    if (is_new) layouts.push_back({.fusion = fusion, .buckets = buckets});
  }
  return layouts;
}

std::optional<GradientNorm> HybridModel::NormOf(const std::vector<Step>& finished) const {
  if (finished.empty()) return std::nullopt;
  // No bucket finishes a step before all have reduced it, so none is further behind than a step.
  const Step oldest = *std::min_element(finished.begin(), finished.end());
  return AgreeOnNorm(group_.recovery_state(), oldest.Next());
}

void HybridModel::BeginGeneration(std::vector<Step> finished, std::optional<GradientNorm> norm) {
  if (noise_ != nullptr) noise_->BeginGeneration(finished);
  if (clip_ != nullptr) clip_->BeginGeneration(std::move(finished), norm);
}

absl::Status HybridModel::Divide(std::shared_ptr<const ClusterView> view) {
  COVEY_ASSIGN_OR_RETURN(
      plan_, PlanModel(definition_.tables, std::move(view), definition_.options, group_.size()));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<PartUpdate>> HybridModel::MakeUpdateOf(size_t bucket) const {
  return MakeUpdate(layout().buckets()[bucket], plan_, group_, link_);
}

std::vector<std::shared_ptr<BucketPipeline>> HybridModel::TakePipelines() {
  for (const auto& pipeline : pipelines_) pipeline->Retire();
  return std::exchange(pipelines_, {});
}

bool HybridModel::MembersUpdate(size_t bucket) const {
  return plan_.plans[layout().buckets()[bucket].position()].member_optimizer.has_value();
}

Step HybridModel::begun() const {
  Step newest;
  for (const auto& pipeline : pipelines_) newest = std::max(newest, pipeline->begun());
  return newest;
}

Step HybridModel::finished() const {
  Step newest;
  for (const auto& pipeline : pipelines_) newest = std::max(newest, pipeline->finished());
  return newest;
}

Step HybridModel::Oldest(Step (BucketPipeline::*step)() const) const {
  if (empty()) return Step();
  Step oldest = (*pipelines_[0].*step)();
  for (const auto& pipeline : pipelines_) oldest = std::min(oldest, (*pipeline.*step)());
  return oldest;
}

Step HybridModel::finished_by_all() const { return Oldest(&BucketPipeline::finished); }

Step HybridModel::ended_by_all() const { return Oldest(&BucketPipeline::ended); }

MemberProgress HybridModel::Progress() const {
  MemberProgress progress;
  if (clip_ != nullptr) progress.norm = clip_->newest();
  for (const auto& pipeline : pipelines_) {
    BucketProgress& bucket = progress.buckets.emplace_back();
    bucket.finished = pipeline->finished();
    bucket.pulls = pipeline->pulls();
    bucket.waits_for_pull = pipeline->pulling();
    const RoundMemory* rounds = pipeline->rounds();
    if (rounds != nullptr && !rounds->empty()) bucket.learned = rounds->learned();
    const MeanMemory* mean = pipeline->mean();
    if (mean != nullptr && mean->step() > Step()) bucket.learned = mean->step();
  }
  return progress;
}

BucketConsensus HybridModel::ConsensusOn(size_t bucket) const {
  return AgreeOnBucket(group_.recovery_state(), bucket, Step(group_.steps_before()));
}

}  // namespace covey::worker
