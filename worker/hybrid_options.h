// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace covey::worker {

// Below it, the 1e-6 that is added to each norm would count.
inline constexpr double kGradientNormMin = 1e-4;

// Where a table's optimizer runs.
enum class Synchronization {
  // On the servers, under the table's contract with the other groups.
  kCentralized,
  // On the members, each for its part: an all-reduce with the update between its two halves. No
  // server is on the path; the servers keep the initial values. For one group and tables under
  // `bsp`, where it gives the same bits as kCentralized. The members begin with an empty optimizer
  // also where a table's initial values came with a state (client/initial_state.h).
  kDistributed,
  // In the program: a step gives each tensor the mean of the group's gradients, weighted by
  // samples, in place of new values. The program updates its parameters with it, by any rule, and
  // all members do the same. No server is on the path, and the tables keep the values with which
  // they began: so much memory on the servers, and none for an optimizer without a state. For one
  // group, tables under `bsp` and lag 0.
  //   A member that dies costs no step: all others end the step with the same bits. A member keeps
  // each mean for the others until the next step: as much memory as the gradients.
  //   A late member is waited for, whatever the plan allows. A group that has finished a step takes
  // in nobody: Create gives FAILED_PRECONDITION, because the parameters are not ours to give.
  kProgram,
};

// How the gradients of a group's members become one.
enum class Combine {
  // Their mean, weighted by samples.
  kMean,
  // Adasum (Maleki et al. 2020), for each tensor by itself: pairs of members in the order of ranks,
  // then pairs of these, become
  //
  //   a (1 - a.b / 2 |a|^2) + b (1 - a.b / 2 |b|^2)
  //
  // so gradients that have nothing in common are added, and equal ones averaged. Each member's
  // gradient counts the same, whatever its samples, unless it has none. Made for batches that are
  // larger than those for which the learning rate was chosen.
  //   Costs beside kMean: once more the memory of the gradients; uplinks of racks carry every
  // member's gradient, since nothing is added on the way; a small all-reduce per bucket; arithmetic
  // in proportion to the members. For groups of up to kAdasumMembersMax.
  kAdasum,
};
inline constexpr uint32_t kAdasumMembersMax = 64;

// The wire formats for which a table's rounding errors are kept and added to the next step's
// gradient. Costs as much memory as the gradients.
enum class ErrorFeedback {
  kNever,
  kEightBits,          // int8, float8 and topk
  kInt8 = kEightBits,  // a second name
  kAlways,
};

// Decides which tensors travel together.
struct FusionLimits {
  // A tensor of this many bytes or more travels alone: its messages are large enough.
  uint64_t tensor_bytes = 64 << 10;
  // Bytes of a bucket. Larger means fewer messages, and a longer wait for the bucket's last tensor.
  // 0 = every tensor travels alone.
  uint64_t bucket_bytes = 1 << 20;
  // Bytes of all tensors, including large ones, from a bucket's first to its last. This bounds the
  // part of the backward pass during which the bucket waits.
  uint64_t span_bytes = 4 << 20;
};

// How a model is trained. The same on all members.
struct HybridOptions {
  Synchronization synchronization = Synchronization::kCentralized;
  // 0 or 1. With 1, a step computes with the values of the step before last, so that a whole step's
  // computation hides the communication. Gradients are then one step late; it costs a copy of
  // gradients and values.
  uint32_t lag = 0;
  FusionLimits fusion;
  ErrorFeedback error_feedback = ErrorFeedback::kEightBits;
  Combine combine = Combine::kMean;
  // The mean gradient of each step is scaled down to this norm over all tensors when it is larger,
  // as by torch.nn.utils.clip_grad_norm_ (worker/hybrid/gradient_clip.h). It is the gradient of one
  // step of this group: also under `local`, and under other contracts before groups come together.
  // No tensor is updated before the last one has been reduced, so the program submits all tensors
  // of a step before it waits for one. 0 = not clipped; else from kGradientNormMin on, and finite.
  double max_gradient_norm = 0;
  // The squared norms of the members' gradients and of the group's are taken in each step, for
  // HybridStep::TakeGradientNorms, from which programs estimate the noise of gradients
  // (worker/gradient_noise.h) and change the batch (worker/batch_growth.h) or the learning rate.
  // The step itself is the same, bit for bit. Costs a pass over the gradient and a small all-gather
  // that no value waits for. Rounding to `gradient_format` counts as the group's. Not with kAdasum,
  // which takes no mean.
  bool measure_noise = false;
  // The group tries settings while it trains, a few steps each, measures examples per second, and
  // stays with the fastest: the algorithm of its collectives, the bytes of a slice and, with
  // kProgram, which tensors travel together, in place of `fusion`. Error feedback keeps `fusion`.
  // At most 30 settings of 6 steps each, and again whenever the group's members change. What it
  // chose is logged, by the group's first member (step_tuned).
  //   Sums are taken in an order that depends on these settings and so, in the end, on measured
  // times: all members have the same bits, but two runs may not.
  bool autotune = false;
};

}  // namespace covey::worker
