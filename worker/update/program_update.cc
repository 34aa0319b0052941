// SPDX-License-Identifier: Apache-2.0
#include "worker/update/program_update.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/buffer.h"
#include "common/optimizer/kernels.h"

namespace covey::worker {

void ProgramUpdate::Apply(absl::Time now, PartStep step, Outbox& outbox) {
  step.sum_memory = Buffer();
  for (size_t i = 0; i < shards_.size(); ++i) {
    const PartRange range = shards_[i].elements;
    const std::span<const float> sum = step.sum.subspan(range.first, range.count);
    const std::span<float> mean = step.values.subspan(range.first, range.count);
    if (step.samples == 0) {
      std::fill(mean.begin(), mean.end(), 0.0f);
      continue;
    }
    if (refuses_non_finite_[i] && !AllFinite(sum)) {
      const absl::Status status = absl::InvalidArgumentError(absl::StrCat(
          "tensor ", shards_[i].name, " in step ", step.step.value(),
          ": the group's gradient holds NaN or infinity. Lower the learning rate, or let the ",
          "table accept such gradients"));
      group_.Abort(now, status, outbox);
      step.done(now, status, outbox);
      return;
    }
    const auto samples = static_cast<float>(step.samples);
    std::transform(sum.begin(), sum.end(), mean.begin(),
                   [samples](float element) { return element / samples; });
  }
  step.done(now, absl::OkStatus(), outbox);
}

void ProgramUpdate::Fetch(absl::Time now, PartStep step, Outbox& outbox) {
  // The servers know of no step.
  step.step = Step();
  first_values_.Fetch(now, std::move(step), outbox);
}

}  // namespace covey::worker
