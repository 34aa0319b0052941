// SPDX-License-Identifier: Apache-2.0
#include "worker/collective/plan_cache.h"

#include "common/collective/cost_model.h"

namespace covey::worker {
namespace {

// Sizes whose algorithm is remembered; a model has fewer tensors.
constexpr size_t kChoicesMax = 4096;

}  // namespace

void PlanCache::Reset(std::vector<TopologyPath> paths, const LinkCosts& costs) {
  paths_ = std::move(paths);
  costs_ = costs;
  plans_.clear();
  choices_.clear();
}

std::shared_ptr<const Plan> PlanCache::PlanFor(CollectiveKind kind, size_t bytes, Algorithm asked) {
  const Algorithm algorithm = asked == Algorithm::kAutomatic ? Choose(kind, bytes) : asked;
  std::shared_ptr<const Plan>& plan = plans_[algorithm];
  if (plan == nullptr) {
    plan = std::make_shared<const Plan>(PlanOptions{
        .algorithm = algorithm, .size = static_cast<uint32_t>(paths_.size()), .paths = paths_});
  }
  return plan;
}

Algorithm PlanCache::Choose(CollectiveKind kind, size_t bytes) {
  if (algorithm_ != Algorithm::kAutomatic) return algorithm_;
  if (paths_.size() == 1) return Algorithm::kRing;
  const std::pair key(kind, bytes);
  const auto known = choices_.find(key);
  if (known != choices_.end()) return known->second;
  if (choices_.size() >= kChoicesMax) choices_.clear();
  return choices_[key] = ChooseAlgorithm(kind, bytes, paths_, costs_).algorithm;
}

}  // namespace covey::worker
