// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace covey {

// The arithmetic of the optimizers: element-wise loops over spans of floats, each one pass over
// memory.
//
// Pure and thread-safe. All spans of one call have the same length; any alignment. `values_out` is
// either the very same memory as `values_in` (update in place) or disjoint from it (update into a
// fresh buffer while the old one is still being read); every other span is disjoint from it. The
// same holds for the `in` and `out` of each slot, whichever way the others take. All give the same
// bits.
//
// Determinism: element i depends only on element i of the inputs, in the order of operations
// written in kernels.cc, rounded as IEEE 754 single precision after each operation. So the result
// is the same for every vector width, processor and split into shards. This needs -ffp-contract=off
// and no -ffast-math.
//
// Cost, in bytes moved per element, in place: SGD 12, momentum, Nesterov and Adagrad 20, Adam 28,
// AllFinite 4; for each array that is written to another buffer 4 more, because a cache line is
// read before it is written. The arithmetic is hidden behind the memory traffic: a core that moves
// 20 GB/s should update 1.7 (SGD), 1.0 (momentum, Adagrad) or 0.7 (Adam) billion elements per
// second. kernels_bench.cc measures it, and BENCHMARKS.md has figures.

// A state slot of an optimizer, which an update reads and writes.
struct SlotSpans {
  std::span<const float> in;
  std::span<float> out;
};
// For an update in place.
inline SlotSpans InPlace(std::span<float> slot) { return {.in = slot, .out = slot}; }

// Scalars of all updates. The gradient of an element is
//   g = gradient_sum * gradient_scale + weight_decay * value
// where gradient_scale is 1 / samples, and weight_decay the L2 penalty (0: none).
struct GradientScalars {
  float gradient_scale = 1;
  float weight_decay = 0;
};

// value -= learning_rate * g
struct SgdScalars {
  GradientScalars gradient = {};
  float learning_rate = 0;
};
void UpdateSgd(const SgdScalars& scalars, std::span<const float> gradient_sum,
               std::span<const float> values_in, std::span<float> values_out);

// Heavy ball (Polyak 1964) as PyTorch writes it, with dampening 0:
//   velocity = momentum * velocity + g;   value -= learning_rate * velocity
struct MomentumScalars {
  GradientScalars gradient = {};
  float learning_rate = 0;
  float momentum = 0;
};
void UpdateMomentum(const MomentumScalars& scalars, std::span<const float> gradient_sum,
                    std::span<const float> values_in, std::span<float> values_out,
                    SlotSpans velocity);

// Nesterov's acceleration in the form of Sutskever et al. 2013, as PyTorch writes it:
//   velocity = momentum * velocity + g;   value -= learning_rate * (g + momentum * velocity)
void UpdateNesterov(const MomentumScalars& scalars, std::span<const float> gradient_sum,
                    std::span<const float> values_in, std::span<float> values_out,
                    SlotSpans velocity);

// Adagrad (Duchi et al. 2011) as PyTorch writes it, epsilon outside the root:
//   squares += g * g;   value -= learning_rate * g / (sqrt(squares) + epsilon)
struct AdagradScalars {
  GradientScalars gradient = {};
  float learning_rate = 0;
  float epsilon = 0;
};
void UpdateAdagrad(const AdagradScalars& scalars, std::span<const float> gradient_sum,
                   std::span<const float> values_in, std::span<float> values_out,
                   SlotSpans squares);

// Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019) as PyTorch writes them:
//   mean   = beta1 * mean + (1 - beta1) * g
//   square = beta2 * square + (1 - beta2) * g * g
//   value  = keep * value - rate * mean / (sqrt(square) * root_correction + epsilon)
// For update t = 1, 2, …: rate = learning_rate / (1 - beta1^t), root_correction = 1 / sqrt(1 -
// beta2^t). Adam has keep = 1; AdamW has gradient.weight_decay = 0 and keep = 1 - learning_rate *
// weight_decay.
struct AdamScalars {
  GradientScalars gradient = {};
  float rate = 0;
  float root_correction = 1;
  float epsilon = 0;
  float keep = 1;
  float beta1 = 0;
  float one_minus_beta1 = 1;
  float beta2 = 0;
  float one_minus_beta2 = 1;
};
void UpdateAdam(const AdamScalars& scalars, std::span<const float> gradient_sum,
                std::span<const float> values_in, std::span<float> values_out, SlotSpans mean,
                SlotSpans square);

// Nesterov's acceleration with a velocity that absorbs gradients once per N updates (Liu et al.
// 2024, "delayed Nesterov" with activation c = 0):
//   held += g
//   every Nth update:  velocity = momentum * velocity + held / N;   held = 0;
//                      value -= learning_rate * (g / N + momentum * velocity)
//   the others:        value -= learning_rate * (g / N)
// So N gradients move the values as far as one Nesterov step of their mean; with N = 1 the bits are
// those of UpdateNesterov. Release does every Nth update, Hold the others. Hold leaves the velocity
// as it is: in place it does not touch it, else it copies it.
struct DelayedNesterovScalars {
  GradientScalars gradient = {};
  float learning_rate = 0;
  float momentum = 0;
  float share = 1;  // 1 / N
};
void HoldDelayedNesterov(const DelayedNesterovScalars& scalars, std::span<const float> gradient_sum,
                         std::span<const float> values_in, std::span<float> values_out,
                         SlotSpans velocity, SlotSpans held);
void ReleaseDelayedNesterov(const DelayedNesterovScalars& scalars,
                            std::span<const float> gradient_sum, std::span<const float> values_in,
                            std::span<float> values_out, SlotSpans velocity, SlotSpans held);

// A row of a sparse table and its update. All rows of a call are different memory.
struct RowUpdate {
  const float* gradient_sum = nullptr;  // of this row
  float* values = nullptr;              // updated in place, as are the slots
  float* slots[2] = {};                 // as the kernel says; null where it has none
};

// The updates above for rows of `width` elements, with the same bits. An update of one row costs
// about as much as a cache miss, so callers have the rows fetched ahead.
void UpdateRowsSgd(const SgdScalars& scalars, size_t width, std::span<const RowUpdate> rows);
// Slot 0: squares.
void UpdateRowsAdagrad(const AdagradScalars& scalars, size_t width,
                       std::span<const RowUpdate> rows);
// Slot 0: mean; slot 1: square. A row has scalars of its own, because it counts its own updates.
// Precondition: equal sizes.
void UpdateRowsAdam(std::span<const AdamScalars> scalars, size_t width,
                    std::span<const RowUpdate> rows);

// Adagrad with one sum for each row (Mudigere et al. 2022), as FBGEMM writes it:
//   square += mean over the row of g * g;   value -= learning_rate / (sqrt(square) + epsilon) * g
// The mean is a sum in 8 lanes, by index modulo 8, which are added as ((0+4)+(2+6)) +
// ((1+5)+(3+7)), divided by the width. Slot 0: the sum, one element.
void UpdateRowsRowwiseAdagrad(const AdagradScalars& scalars, size_t width,
                              std::span<const RowUpdate> rows);

// FTRL-proximal (McMahan et al. 2013, algorithm 1):
//   sigma = (sqrt(n + g * g) - sqrt(n)) / alpha;   z += g - sigma * value;   n += g * g
//   value = 0 where |z| <= l1, else -(z - sign(z) * l1) / ((beta + sqrt(n)) / alpha + l2)
// Slot 0: z; slot 1: n.
struct FtrlScalars {
  float gradient_scale = 1;
  float alpha = 0;
  float beta = 1;
  float l1 = 0;
  float l2 = 0;
};
void UpdateRowsFtrl(const FtrlScalars& scalars, size_t width, std::span<const RowUpdate> rows);

// Delay compensation (DC-ASGD, Zheng et al. 2017): what the gradient, computed on `previous`, would
// be at `values`, to first order, with the square of the gradient in place of the Hessian. For the
// mean gradient of n samples and the constant lambda, strength = lambda / n:
//   compensated = gradient_sum + strength * gradient_sum^2 * (values - previous)
// An element that this would make infinite or NaN stays as it was.
void CompensateDelay(float strength, std::span<const float> gradient_sum,
                     std::span<const float> values, std::span<const float> previous,
                     std::span<float> compensated);

// False when any element is NaN or infinite.
bool AllFinite(std::span<const float> x);
// Where the first such element is; nothing when all are finite. As fast as AllFinite then.
std::optional<size_t> FirstNonFinite(std::span<const float> x);

}  // namespace covey
