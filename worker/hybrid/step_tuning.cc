// SPDX-License-Identifier: Apache-2.0
#include "worker/hybrid/step_tuning.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/median.h"
#include "common/cluster/limits.h"
#include "common/collective/algorithm.h"
#include "common/collective/collective_kind.h"
#include "common/collective/part_range.h"
#include "worker/collective/collective.h"

namespace covey::worker {
namespace {

// The cost model's choice comes first. A reduce-scatter in one-shot is the direct one.
constexpr Algorithm kTried[] = {
    Algorithm::kAutomatic,    Algorithm::kDirect,          Algorithm::kRing, Algorithm::kMultiRing,
    Algorithm::kHierarchical, Algorithm::kHalvingDoubling, Algorithm::kTree};
constexpr size_t kSlices[] = {0, 256 << 10, 64 << 10};

// The choice: the number of the point, from 1; and whether the search is over.
constexpr size_t kWords = 2;

}  // namespace

std::vector<FusionLimits> FusionCandidates() {
  std::vector<FusionLimits> candidates{{.bucket_bytes = 0}};
  for (const uint64_t quarters : {1, 4, 16, 64, 256}) {
    const FusionLimits usual;
    candidates.push_back({.tensor_bytes = usual.tensor_bytes * quarters / 4,
                          .bucket_bytes = usual.bucket_bytes * quarters / 4,
                          .span_bytes = usual.span_bytes * quarters / 4});
  }
  return candidates;
}

void StepTuning::Begin(Step step, size_t buckets) {
  agreement_.reset();
  tuner_.reset();
  rates_.clear();
  over_ = absl::InfinitePast();
  const Layout* const layout = LayoutWith(buckets);
  if (layout == nullptr || group_.size() == 1) {
    state_ = State::kOff;
    return;
  }
  state_ = State::kTrial;
  newest_ = step;
  last_ = Step(step.value() + kTrialSteps);
  if (group_.rank() > 0) return;
  const auto first = static_cast<size_t>(layout - layouts_.data());
  tuner_.emplace(std::vector<size_t>{layouts_.size(), std::size(kTried), std::size(kSlices)},
                 StepTuner::Point{first, 0, 0});
}

const StepTuning::Layout* StepTuning::LayoutWith(size_t buckets) const {
  for (const Layout& layout : layouts_) {
    if (layout.buckets == buckets) return &layout;
  }
  return nullptr;
}

size_t StepTuning::points() const {
  return layouts_.size() * std::size(kTried) * std::size(kSlices);
}

StepTuner::Point StepTuning::PointOf(size_t index) const {
  const size_t rest = index / std::size(kSlices);
  return {rest / std::size(kTried), rest % std::size(kTried), index % std::size(kSlices)};
}

size_t StepTuning::IndexOf(const StepTuner::Point& point) const {
  return (point[0] * std::size(kTried) + point[1]) * std::size(kSlices) + point[2];
}

StepTuning::Settings StepTuning::SettingsAt(const StepTuner::Point& point) const {
  return {.layout = layouts_[point[0]],
          .route = {.algorithm = kTried[point[1]], .slice_bytes = kSlices[point[2]]}};
}

void StepTuning::StepOver(absl::Time now, Step step, uint64_t samples, absl::Time deadline,
                          Outbox& outbox) {
  COVEY_CHECK(state_ == State::kTrial);
  if (step <= newest_) return;
  newest_ = step;
  if (over_ < now && over_ != absl::InfinitePast()) {
    rates_.push_back(static_cast<double>(samples) / absl::ToDoubleSeconds(now - over_));
  }
  over_ = now;
  if (step == last_) Agree(now, deadline, outbox);
}

void StepTuning::Agree(absl::Time now, absl::Time deadline, Outbox& outbox) {
  state_ = State::kAgreeing;
  agreement_ = std::make_shared<Agreement>();
  agreement_->words.resize(kWords);
  if (tuner_) {
    tuner_->Add(UpperMedian(std::move(rates_)));
    agreement_->words = {static_cast<float>(1 + IndexOf(tuner_->point())),
                         tuner_->settled() ? 1.0f : 0.0f};
  }
  Collective sum{.id = {kTuningStream, last_.value()},
                 .kind = CollectiveKind::kAllReduce,
                 .name = "the settings of the next steps",
                 .data = agreement_->words,
                 .owner = agreement_,
                 .parts = std::vector<PartRange>(group_.size()),
                 .deadline = deadline,
                 .is_change_point = false};
  sum.parts[0] = {.first = 0, .count = kWords};
  sum.arrived = [agreement = agreement_](absl::Time, const CollectiveResult&, Outbox&) {
    agreement->arrived = true;
  };
  // A failure is the group's.
  sum.done = [](absl::Time, const CollectiveResult&, Outbox&) {};
  group_.Start(now, std::move(sum), outbox);
}

StepTuning::Settings StepTuning::Decide() {
  COVEY_CHECK(state_ == State::kAgreeing && decided());
  const std::shared_ptr<const Agreement> agreement = std::exchange(agreement_, nullptr);
  // Only a member with another protocol sends another number.
  const float number = agreement->words[0];
  const bool is_point = number >= 1 && number <= static_cast<float>(points());
  const StepTuner::Point point = PointOf(is_point ? static_cast<size_t>(number) - 1 : 0);
  const Settings settings = SettingsAt(point);
  rates_.clear();
  over_ = absl::InfinitePast();
  last_ = Step(last_.value() + kTrialSteps);
  state_ = agreement->words[1] > 0 ? State::kOff : State::kTrial;
  if (state_ == State::kOff && tuner_) {
    LogInfo("step_tuned",
            {{"group", group_.id().value()},
             {"step", newest_.value()},
             {"trials", tuner_->samples()},
             {"buckets", settings.layout.buckets},
             {"bucket_bytes", settings.layout.fusion.bucket_bytes},
             {"algorithm", AlgorithmName(settings.route.algorithm)},
             {"slice_bytes",
              settings.route.slice_bytes > 0 ? settings.route.slice_bytes : kSliceBytesMax},
             {"samples_per_second", tuner_->rate()},
             {"samples_per_second_before", tuner_->first_rate()}});
  }
  return settings;
}

}  // namespace covey::worker
