// SPDX-License-Identifier: Apache-2.0
#include "scheduler/groups/group_experience.h"

#include <algorithm>
#include <cmath>

namespace covey::scheduler {

void GroupExperience::NoteGroups(absl::Time now, size_t groups, double measured, double predicted) {
  if (!(measured > 0) || !(predicted > 0)) return;
  fits_[groups] = {.ratio = measured / predicted, .at = now};
}

void GroupExperience::NoteSamples(const std::map<size_t, double>& samples_of) {
  for (const auto& [members, samples] : samples_of) samples_of_[members] = samples;
}

double GroupExperience::FixedBatch() const {
  if (samples_of_.size() < 2) return 0;
  const auto& [smallest, least] = *samples_of_.begin();
  const auto& [largest, most] = *samples_of_.rbegin();
  // A batch for each member grows with the number of members, a fixed one not at all.
  const double halfway = std::sqrt(static_cast<double>(largest) / static_cast<double>(smallest));
  return most < least * halfway ? (least + most) / 2 : 0;
}

void GroupExperience::AddTo(absl::Time now, ThroughputParameters& model) const {
  for (const auto& [groups, fit] : fits_) {
    if (now - fit.at <= kKeptFor) model.fits[groups] = fit.ratio;
  }
  model.group_samples_per_step = FixedBatch();
}

}  // namespace covey::scheduler
