// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/runtime/actor.h"
#include "worker/gradient_noise.h"
#include "worker/group/communicator.h"
#include "worker/hybrid/step_sums.h"

namespace covey::worker {

// Takes the norms of each step's gradients in the group, for the program: each member adds what it
// had before the gradients were summed, and the part of the sum that it has afterwards. Nothing
// waits for them, and no value of the step depends on them.
//
// All members get the norms of the same steps, with the same bits, except that a step in which the
// group is interrupted may be missing on some; the next one then starts over on all of them. Left
// out on all members are steps without examples, steps that some buckets finished in an earlier
// generation, and those in which a member was late with some of its buckets.
//
// Cost: one pass over the gradient and one over the member's part, and an all-gather of
// 4 doubles a member and step.
//
// Actor-confined. Deterministic. The communicator outlives it.
class NoiseMeter : public std::enable_shared_from_this<NoiseMeter> {
 public:
  explicit NoiseMeter(Communicator& group);

  // As StepSums::BeginGeneration.
  void BeginGeneration(std::vector<Step> finished);

  // One bucket of a step: the square of this member's gradient times its samples, and these; and
  // its part of the sum over the members.
  struct Bucket {
    double own_square = 0;
    uint64_t own_samples = 0;
    std::span<const float> sum;
  };
  // Once per bucket and step.
  void Add(absl::Time now, uint32_t bucket, Step step, const Bucket& measured, absl::Time deadline,
           Outbox& outbox);

  // Calls `call` once no norms are on their way between the members; perhaps at once.
  void WhenKnown(std::function<void()> call);
  // The norms of the steps since the last call, the newest kNormsMax, in their order.
  std::vector<GradientNorms> Take();

 private:
  void Known(Step step, const StepSums::Sums* sums);

  const std::shared_ptr<StepSums> sums_;
  Step newest_;
  bool starts_over_ = true;
  std::deque<GradientNorms> norms_;
  std::vector<std::function<void()>> waiting_;
};

// For a program that never takes them.
inline constexpr size_t kNormsMax = 1024;

}  // namespace covey::worker
