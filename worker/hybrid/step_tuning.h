// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/runtime/actor.h"
#include "worker/group/communicator.h"
#include "worker/hybrid/step_route.h"
#include "worker/hybrid/step_tuner.h"
#include "worker/hybrid_options.h"

namespace covey::worker {

// Finds the settings with which the group's steps are fastest (HybridOptions.autotune). Some steps
// with the same settings are a trial. Rank 0 measures it, and chooses the next settings by
// StepTuner. After the last step of a trial all members add up what they know, which is rank 0's
// choice alone, so that nobody begins another step before all have finished this one and know the
// choice:
//
//             Begin          the trial's last step is over        Decide
//   kOff ──────────▶ kTrial ───────────────────────────▶ kAgreeing ──────▶ kTrial
//    ▲                                                            │
//    └──────────────────────── the tuner has settled ─────────────┘
//
// Each state ── Begin ──▶ kTrial, or kOff where there is nothing to choose from.
//
// Invariant: when some member has decided after a step, all of them have finished the step, and no
// member finishes the next one before all have decided.
//
// Actor-confined. Deterministic.
class StepTuning {
 public:
  enum class State { kOff, kTrial, kAgreeing };
  // A division of the model into buckets that may be tried; each has another number of buckets.
  struct Layout {
    FusionLimits fusion;
    size_t buckets = 0;
  };
  struct Settings {
    Layout layout;
    StepRoute route;
  };

  // `group` outlives it.
  explicit StepTuning(Communicator& group) : group_(group) {}

  // What may be tried, the same on all members; empty: nothing is tuned. Call Begin next.
  void SetLayouts(std::vector<Layout> layouts) { layouts_ = std::move(layouts); }
  // Searches again, from the step after `step` on, where all members have this many buckets and the
  // default route.
  void Begin(Step step, size_t buckets);

  State state() const { return state_; }
  // Whether a bucket may begin this step, or, with the step it has finished, a pull.
  bool MayBegin(Step step) const {
    return state_ == State::kOff || (state_ == State::kTrial && step <= last_);
  }
  // All buckets have finished `step`, with so many examples of all members. `deadline`: of what the
  // members agree on after it. Precondition: kTrial.
  void StepOver(absl::Time now, Step step, uint64_t samples, absl::Time deadline, Outbox& outbox);
  // All members have finished the trial and know the next settings.
  bool decided() const { return agreement_ != nullptr && agreement_->arrived; }
  // Begins the next trial, or ends the search. Precondition: decided().
  Settings Decide();
  // The layout with this many buckets; null: there is none.
  const Layout* LayoutWith(size_t buckets) const;

 private:
  // Of all members together; only rank 0 has other values than 0.
  struct Agreement {
    std::vector<float> words;
    bool arrived = false;
  };
  size_t points() const;
  StepTuner::Point PointOf(size_t index) const;
  size_t IndexOf(const StepTuner::Point& point) const;
  Settings SettingsAt(const StepTuner::Point& point) const;
  void Agree(absl::Time now, absl::Time deadline, Outbox& outbox);

  Communicator& group_;
  std::vector<Layout> layouts_;

  State state_ = State::kOff;
  std::optional<StepTuner> tuner_;          // at rank 0
  Step last_;                               // of the trial
  Step newest_;                             // that is over
  absl::Time over_ = absl::InfinitePast();  // when it was, in this trial
  std::vector<double> rates_;               // of the trial's steps: examples per second
  std::shared_ptr<Agreement> agreement_;    // in kAgreeing
};

// Divisions into buckets that are worth trying, for a model of any size.
std::vector<FusionLimits> FusionCandidates();

// Steps of a trial. The first one is not measured: it is slower, because plans are made and memory
// is new.
inline constexpr uint64_t kTrialSteps = 6;

}  // namespace covey::worker
