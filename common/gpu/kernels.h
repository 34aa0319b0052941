// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "common/optimizer/kernels.h"

namespace covey::gpu {

// The kernels of common/optimizer/kernels.h and common/tensor/kernels.h, run by the GPU: same
// formulas, same rules of aliasing, same bits. The exception is a NaN, which is a NaN here too but
// may have other bits.
//
// Every span is of GPU memory (memory.h). A call returns at once; the GPU does the work in the
// order of the calling thread's calls. The next gpu::Wait() reports a failure. Built only with
// --config=cuda, which defines COVEY_CUDA.
//
// Four elements are loaded and stored at a time where all spans of a call begin at a multiple of 16
// bytes, one elsewhere.
//
// Cost: the bytes that those headers name at the speed of the GPU's memory, plus some microseconds
// to start.
// An H200 moves 4.8 TB/s by its data sheet, so SGD of 64 MiB in place should take 42 us and Adam
// 98. One element at a time took 61 us (3.3 TB/s) and 117 us (4.0 TB/s); kernels_bench.cc measures
// four.

void UpdateSgd(const SgdScalars& scalars, std::span<const float> gradient_sum,
               std::span<const float> values_in, std::span<float> values_out);

void UpdateMomentum(const MomentumScalars& scalars, std::span<const float> gradient_sum,
                    std::span<const float> values_in, std::span<float> values_out,
                    SlotSpans velocity);

void UpdateNesterov(const MomentumScalars& scalars, std::span<const float> gradient_sum,
                    std::span<const float> values_in, std::span<float> values_out,
                    SlotSpans velocity);

void UpdateAdagrad(const AdagradScalars& scalars, std::span<const float> gradient_sum,
                   std::span<const float> values_in, std::span<float> values_out,
                   SlotSpans squares);

void UpdateAdam(const AdamScalars& scalars, std::span<const float> gradient_sum,
                std::span<const float> values_in, std::span<float> values_out, SlotSpans mean,
                SlotSpans square);

void HoldDelayedNesterov(const DelayedNesterovScalars& scalars, std::span<const float> gradient_sum,
                         std::span<const float> values_in, std::span<float> values_out,
                         SlotSpans velocity, SlotSpans held);

void ReleaseDelayedNesterov(const DelayedNesterovScalars& scalars,
                            std::span<const float> gradient_sum, std::span<const float> values_in,
                            std::span<float> values_out, SlotSpans velocity, SlotSpans held);

void AddInto(std::span<float> sum, std::span<const float> x);

void Scale(std::span<float> x, float factor);

// answer[0] becomes 1 when all elements of `x` are finite, 0 when any is NaN or infinite. `answer`
// is one float outside of `x`. It stays on the GPU, so that no call has to wait for it alone.
void AllFinite(std::span<const float> x, std::span<float, 1> answer);

}  // namespace covey::gpu
