// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>

#include "absl/time/time.h"
#include "common/grouping/throughput_model.h"

namespace covey::scheduler {

// What the groups of a job did, by which later plans are corrected: how far predictions were from
// what was measured (ThroughputParameters::fits), and whether groups have a fixed batch
// (group_samples_per_step).
//
// A fit is of a number of groups, not of their members: where the model is wrong, it is mostly
// wrong in the same way for all groups of about one size. A fit is forgotten after kKeptFor, so
// that the planner may try its number of groups again.
//
// A value.
class GroupExperience {
 public:
  static constexpr absl::Duration kKeptFor = absl::Hours(1);

  // `groups` groups made `measured` samples per second, and the model alone predicts `predicted`
  // for them. Ignored unless both are above 0.
  void NoteGroups(absl::Time now, size_t groups, double measured, double predicted);
  // Groups of some sizes trained so many samples per step.
  void NoteSamples(const std::map<size_t, double>& samples_of);

  void AddTo(absl::Time now, ThroughputParameters& model) const;

 private:
  struct Fit {
    double ratio = 1;
    absl::Time at;
  };

  // The samples per step that groups of all sizes have in common; 0 = larger groups train more, or
  // only one size is known.
  double FixedBatch() const;

  std::map<size_t, Fit> fits_;           // by number of groups
  std::map<size_t, double> samples_of_;  // by number of members
};

}  // namespace covey::scheduler
