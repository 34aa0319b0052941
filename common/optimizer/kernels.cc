// SPDX-License-Identifier: Apache-2.0
#include "common/optimizer/kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "common/optimizer/elementwise.h"

// Compiles this file once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/optimizer/kernels.cc"
#include "hwy/foreach_target.h"
// Chooses the widest that the processor has.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace covey {
namespace {
namespace HWY_NAMESPACE {

constexpr uint32_t kExponent = 0x7f800000;  // all ones: NaN or infinity

inline float Gradient(const GradientScalars& s, float gradient_sum, float value) {
  return gradient_sum * s.gradient_scale + s.weight_decay * value;
}

void Sgd(const SgdScalars s, const float* sum, const float* in, float* out, size_t count) {
  COVEY_ELEMENTWISE
  for (size_t i = 0; i < count; ++i) {
    const float g = Gradient(s.gradient, sum[i], in[i]);
    out[i] = in[i] - s.learning_rate * g;
  }
}

void Momentum(const MomentumScalars s, const float* sum, const float* in, float* out,
              const float* v_in, float* v_out, size_t count) {
  COVEY_ELEMENTWISE
  for (size_t i = 0; i < count; ++i) {
    const float g = Gradient(s.gradient, sum[i], in[i]);
    const float next = s.momentum * v_in[i] + g;
    v_out[i] = next;
    out[i] = in[i] - s.learning_rate * next;
  }
}

void Nesterov(const MomentumScalars s, const float* sum, const float* in, float* out,
              const float* v_in, float* v_out, size_t count) {
  COVEY_ELEMENTWISE
  for (size_t i = 0; i < count; ++i) {
    const float g = Gradient(s.gradient, sum[i], in[i]);
    const float next = s.momentum * v_in[i] + g;
    v_out[i] = next;
    out[i] = in[i] - s.learning_rate * (g + s.momentum * next);
  }
}

void Adagrad(const AdagradScalars s, const float* sum, const float* in, float* out,
             const float* q_in, float* q_out, size_t count) {
  COVEY_ELEMENTWISE
  for (size_t i = 0; i < count; ++i) {
    const float g = Gradient(s.gradient, sum[i], in[i]);
    const float next = q_in[i] + g * g;
    q_out[i] = next;
    out[i] = in[i] - s.learning_rate * g / (std::sqrt(next) + s.epsilon);
  }
}

void Adam(const AdamScalars s, const float* sum, const float* in, float* out, const float* m_in,
          float* m_out, const float* q_in, float* q_out, size_t count) {
  COVEY_ELEMENTWISE
  for (size_t i = 0; i < count; ++i) {
    const float g = Gradient(s.gradient, sum[i], in[i]);
    const float next_mean = s.beta1 * m_in[i] + s.one_minus_beta1 * g;
    const float next_square = s.beta2 * q_in[i] + s.one_minus_beta2 * g * g;
    m_out[i] = next_mean;
    q_out[i] = next_square;
    const float root = std::sqrt(next_square) * s.root_correction;
    out[i] = s.keep * in[i] - s.rate * next_mean / (root + s.epsilon);
  }
}

void HoldNesterov(const DelayedNesterovScalars s, const float* sum, const float* in, float* out,
                  const float* h_in, float* h_out, size_t count) {
  COVEY_ELEMENTWISE
  for (size_t i = 0; i < count; ++i) {
    const float g = Gradient(s.gradient, sum[i], in[i]);
    h_out[i] = h_in[i] + g;
    out[i] = in[i] - s.learning_rate * (g * s.share);
  }
}

void ReleaseNesterov(const DelayedNesterovScalars s, const float* sum, const float* in, float* out,
                     const float* v_in, float* v_out, const float* h_in, float* h_out,
                     size_t count) {
  COVEY_ELEMENTWISE
  for (size_t i = 0; i < count; ++i) {
    const float g = Gradient(s.gradient, sum[i], in[i]);
    const float next = s.momentum * v_in[i] + (h_in[i] + g) * s.share;
    v_out[i] = next;
    h_out[i] = 0;
    out[i] = in[i] - s.learning_rate * (g * s.share + s.momentum * next);
  }
}

void RowsSgd(const SgdScalars s, size_t width, const RowUpdate* rows, size_t count) {
  for (size_t r = 0; r < count; ++r) {
    const RowUpdate& row = rows[r];
    Sgd(s, row.gradient_sum, row.values, row.values, width);
  }
}

void RowsAdagrad(const AdagradScalars s, size_t width, const RowUpdate* rows, size_t count) {
  for (size_t r = 0; r < count; ++r) {
    const RowUpdate& row = rows[r];
    Adagrad(s, row.gradient_sum, row.values, row.values, row.slots[0], row.slots[0], width);
  }
}

void RowsAdam(const AdamScalars* s, size_t width, const RowUpdate* rows, size_t count) {
  for (size_t r = 0; r < count; ++r) {
    const RowUpdate& row = rows[r];
    Adam(s[r], row.gradient_sum, row.values, row.values, row.slots[0], row.slots[0], row.slots[1],
         row.slots[1], width);
  }
}

// Eight floats in the compiler's own vector type: from a plain loop over lanes, gcc 12 makes a loop
// over blocks of 128 elements that rows do not have, and the update of a row takes twice as long.
constexpr size_t kLanes = 8;
typedef float Lanes __attribute__((vector_size(kLanes * sizeof(float))));

inline void AddSquares(const GradientScalars& s, const float* sum, const float* values,
                       size_t count, Lanes& squares) {
  Lanes sums = {};
  Lanes at = {};
  std::memcpy(&sums, sum, count * sizeof(float));
  std::memcpy(&at, values, count * sizeof(float));
  const Lanes g = sums * s.gradient_scale + at * s.weight_decay;
  squares += g * g;
}

void RowsRowwiseAdagrad(const AdagradScalars s, size_t width, const RowUpdate* rows, size_t count) {
  const size_t whole = width / kLanes * kLanes;
  for (size_t r = 0; r < count; ++r) {
    const RowUpdate& row = rows[r];
    Lanes x = {};
    for (size_t i = 0; i < whole; i += kLanes) {
      AddSquares(s.gradient, row.gradient_sum + i, row.values + i, kLanes, x);
    }
    if (whole < width) {
      AddSquares(s.gradient, row.gradient_sum + whole, row.values + whole, width - whole, x);
    }
    const float sum = ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]));
    const float square = row.slots[0][0] + sum / static_cast<float>(width);
    row.slots[0][0] = square;
    // An update of the whole row with this rate.
    Sgd({.gradient = s.gradient,
         .learning_rate = s.learning_rate / (std::sqrt(square) + s.epsilon)},
        row.gradient_sum, row.values, row.values, width);
  }
}

void Ftrl(const FtrlScalars s, const float* sum, float* w, float* z, float* n, size_t count) {
  COVEY_ELEMENTWISE
  for (size_t i = 0; i < count; ++i) {
    const float g = sum[i] * s.gradient_scale;
    const float next_n = n[i] + g * g;
    const float root = std::sqrt(next_n);
    const float sigma = (root - std::sqrt(n[i])) / s.alpha;
    const float next_z = z[i] + g - sigma * w[i];
    const float shrunk = next_z - std::copysign(s.l1, next_z);
    const float moved = -shrunk / ((s.beta + root) / s.alpha + s.l2);
    n[i] = next_n;
    z[i] = next_z;
    w[i] = std::abs(next_z) <= s.l1 ? 0.0f : moved;
  }
}

void RowsFtrl(const FtrlScalars s, size_t width, const RowUpdate* rows, size_t count) {
  for (size_t r = 0; r < count; ++r) {
    Ftrl(s, rows[r].gradient_sum, rows[r].values, rows[r].slots[0], rows[r].slots[1], width);
  }
}

void Compensate(float strength, const float* sum, const float* now, const float* then, float* out,
                size_t count) {
  COVEY_ELEMENTWISE
  for (size_t i = 0; i < count; ++i) {
    const float moved = sum[i] + strength * sum[i] * sum[i] * (now[i] - then[i]);
    const bool is_finite = (std::bit_cast<uint32_t>(moved) & kExponent) != kExponent;
    out[i] = is_finite ? moved : sum[i];
  }
}

bool IsEachFinite(const float* x, size_t count) {
  uint32_t found = 0;
  for (size_t i = 0; i < count; ++i) {
    found |= (std::bit_cast<uint32_t>(x[i]) & kExponent) == kExponent;
  }
  return found == 0;
}

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace covey
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace covey {
namespace {

HWY_EXPORT(Sgd);
HWY_EXPORT(Momentum);
HWY_EXPORT(Nesterov);
HWY_EXPORT(Adagrad);
HWY_EXPORT(Adam);
HWY_EXPORT(HoldNesterov);
HWY_EXPORT(ReleaseNesterov);
HWY_EXPORT(RowsSgd);
HWY_EXPORT(RowsAdagrad);
HWY_EXPORT(RowsAdam);
HWY_EXPORT(RowsRowwiseAdagrad);
HWY_EXPORT(RowsFtrl);
HWY_EXPORT(Compensate);
HWY_EXPORT(IsEachFinite);

}  // namespace

void UpdateSgd(const SgdScalars& scalars, std::span<const float> gradient_sum,
               std::span<const float> values_in, std::span<float> values_out) {
  HWY_DYNAMIC_DISPATCH(Sgd)
  (scalars, gradient_sum.data(), values_in.data(), values_out.data(), values_out.size());
}

void UpdateMomentum(const MomentumScalars& scalars, std::span<const float> gradient_sum,
                    std::span<const float> values_in, std::span<float> values_out,
                    SlotSpans velocity) {
  HWY_DYNAMIC_DISPATCH(Momentum)
  (scalars, gradient_sum.data(), values_in.data(), values_out.data(), velocity.in.data(),
   velocity.out.data(), values_out.size());
}

void UpdateNesterov(const MomentumScalars& scalars, std::span<const float> gradient_sum,
                    std::span<const float> values_in, std::span<float> values_out,
                    SlotSpans velocity) {
  HWY_DYNAMIC_DISPATCH(Nesterov)
  (scalars, gradient_sum.data(), values_in.data(), values_out.data(), velocity.in.data(),
   velocity.out.data(), values_out.size());
}

void UpdateAdagrad(const AdagradScalars& scalars, std::span<const float> gradient_sum,
                   std::span<const float> values_in, std::span<float> values_out,
                   SlotSpans squares) {
  HWY_DYNAMIC_DISPATCH(Adagrad)
  (scalars, gradient_sum.data(), values_in.data(), values_out.data(), squares.in.data(),
   squares.out.data(), values_out.size());
}

void UpdateAdam(const AdamScalars& scalars, std::span<const float> gradient_sum,
                std::span<const float> values_in, std::span<float> values_out, SlotSpans mean,
                SlotSpans square) {
  HWY_DYNAMIC_DISPATCH(Adam)
  (scalars, gradient_sum.data(), values_in.data(), values_out.data(), mean.in.data(),
   mean.out.data(), square.in.data(), square.out.data(), values_out.size());
}

void HoldDelayedNesterov(const DelayedNesterovScalars& scalars, std::span<const float> gradient_sum,
                         std::span<const float> values_in, std::span<float> values_out,
                         SlotSpans velocity, SlotSpans held) {
  if (velocity.out.data() != velocity.in.data()) {
    std::copy(velocity.in.begin(), velocity.in.end(), velocity.out.begin());
  }
  HWY_DYNAMIC_DISPATCH(HoldNesterov)
  (scalars, gradient_sum.data(), values_in.data(), values_out.data(), held.in.data(),
   held.out.data(), values_out.size());
}

void ReleaseDelayedNesterov(const DelayedNesterovScalars& scalars,
                            std::span<const float> gradient_sum, std::span<const float> values_in,
                            std::span<float> values_out, SlotSpans velocity, SlotSpans held) {
  HWY_DYNAMIC_DISPATCH(ReleaseNesterov)
  (scalars, gradient_sum.data(), values_in.data(), values_out.data(), velocity.in.data(),
   velocity.out.data(), held.in.data(), held.out.data(), values_out.size());
}

void UpdateRowsSgd(const SgdScalars& scalars, size_t width, std::span<const RowUpdate> rows) {
  HWY_DYNAMIC_DISPATCH(RowsSgd)(scalars, width, rows.data(), rows.size());
}

void UpdateRowsAdagrad(const AdagradScalars& scalars, size_t width,
                       std::span<const RowUpdate> rows) {
  HWY_DYNAMIC_DISPATCH(RowsAdagrad)(scalars, width, rows.data(), rows.size());
}

void UpdateRowsAdam(std::span<const AdamScalars> scalars, size_t width,
                    std::span<const RowUpdate> rows) {
  HWY_DYNAMIC_DISPATCH(RowsAdam)(scalars.data(), width, rows.data(), rows.size());
}

void UpdateRowsRowwiseAdagrad(const AdagradScalars& scalars, size_t width,
                              std::span<const RowUpdate> rows) {
  HWY_DYNAMIC_DISPATCH(RowsRowwiseAdagrad)(scalars, width, rows.data(), rows.size());
}

void UpdateRowsFtrl(const FtrlScalars& scalars, size_t width, std::span<const RowUpdate> rows) {
  HWY_DYNAMIC_DISPATCH(RowsFtrl)(scalars, width, rows.data(), rows.size());
}

void CompensateDelay(float strength, std::span<const float> gradient_sum,
                     std::span<const float> values, std::span<const float> previous,
                     std::span<float> compensated) {
  HWY_DYNAMIC_DISPATCH(Compensate)
  (strength, gradient_sum.data(), values.data(), previous.data(), compensated.data(),
   compensated.size());
}

bool AllFinite(std::span<const float> x) {
  return HWY_DYNAMIC_DISPATCH(IsEachFinite)(x.data(), x.size());
}

std::optional<size_t> FirstNonFinite(std::span<const float> x) {
  if (AllFinite(x)) return std::nullopt;
  const auto bad =
      std::find_if(x.begin(), x.end(), [](float element) { return !std::isfinite(element); });
  return static_cast<size_t>(bad - x.begin());
}

}  // namespace covey
#endif  // HWY_ONCE
