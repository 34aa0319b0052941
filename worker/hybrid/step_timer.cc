// SPDX-License-Identifier: Apache-2.0
#include "worker/hybrid/step_timer.h"

#include <utility>

namespace covey::worker {

void StepTimer::Waited(size_t tensor, absl::Time from, absl::Time to) {
  // Away time comes first: submitting ends it, but waiting does not begin it.
  from += away_.Total(to) - away_.Total(from);
  times_.wait += to - from;
  times_.servers += server_times_[tensor].Within(from, to);
}

void StepTimer::BeginInput(absl::Time now) {
  input_under_way_ = Input{.since = now, .waited = times_.wait, .away = away_.Total(now)};
}

void StepTimer::EndInput(absl::Time now) {
  if (!input_under_way_) return;
  times_.input += now - input_under_way_->since - (times_.wait - input_under_way_->waited) -
                  (away_.Total(now) - input_under_way_->away);
  input_under_way_.reset();
}

StepReport StepTimer::Take(absl::Time now) {
  const bool in_input = input_under_way_.has_value();
  EndInput(now);
  const absl::Duration away = away_.Total(now);
  times_.compute =
      now - std::exchange(taken_, now) - times_.wait - (away - std::exchange(away_taken_, away));
  const StepReport report = std::exchange(times_, StepReport());
  if (in_input) BeginInput(now);
  return report;
}

}  // namespace covey::worker
