// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/runtime/actor.h"
#include "worker/group/communicator.h"
#include "worker/group/member_progress.h"
#include "worker/hybrid/step_sums.h"

namespace covey::worker {

// Clips the gradient of each step by its norm over all tensors: the mean over the group's examples
// g becomes
//
//   g * min(1, max_norm / (norm(g) + 1e-6))
//
// which is what torch.nn.utils.clip_grad_norm_ does with the gradient of one process. Each member
// sums the squares of the parts that it has reduced, and StepSums adds up the members' sums. So no
// bucket is updated before the last one is reduced, and all members have the same norm, bit for
// bit.
//
// A norm that is not finite clips nothing: such a gradient is refused where it is applied, which
// names the table; torch would multiply by 0 or NaN.
//
// Loss of a member: some buckets of a step may have been updated, and others are done again without
// its gradient. They are clipped by the norm that the step had, if any survivor knows it.
//
// Actor-confined. Deterministic. The communicator outlives it.
class GradientClip : public std::enable_shared_from_this<GradientClip> {
 public:
  // What the step's gradient has to be multiplied by, 0 to 1.
  using Then = std::function<void(absl::Time, float factor, Outbox&)>;

  // `max_norm` > 0.
  GradientClip(Communicator& group, double max_norm);

  // The generation begins in which bucket b goes on after the step finished[b]. `known`: the norm
  // of a step that is done again for some buckets. What waits is forgotten.
  void BeginGeneration(std::vector<Step> finished, std::optional<GradientNorm> known);

  // This member's part of a bucket has been reduced: `sum` over `samples` examples, which is
  // divided by them; 0 samples count as a gradient of 0. `then` is called, perhaps at once, unless
  // the generation ends before. Once per bucket and step.
  void Add(absl::Time now, uint32_t bucket, Step step, std::span<const float> sum, uint64_t samples,
           absl::Time deadline, Then then, Outbox& outbox);

  // Of the newest step of this generation for which it is known, or of one that is done again.
  const std::optional<GradientNorm>& newest() const { return newest_; }
  // The last norm of any generation.
  std::optional<double> last_norm() const { return last_norm_; }

 private:
  float Factor(double norm) const;

  const double max_norm_;
  const std::shared_ptr<StepSums> squares_;
  std::optional<GradientNorm> newest_;
  std::optional<double> last_norm_;
};

}  // namespace covey::worker
