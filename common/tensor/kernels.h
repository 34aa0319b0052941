// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "common/tensor/wire_format.h"

namespace covey {

// Arithmetic and codecs over spans of floats, each one pass over memory.
//
// Pure and thread-safe; any alignment; spans of one call do not overlap. Deterministic: one IEEE
// operation per element and step, in a fixed order, so that vector instructions change the speed
// and never the bits (except the payload of a NaN). Bound by memory: AddInto moves 12 bytes per
// element, Encode and Decode 4 plus the encoded size. kernels_bench.cc measures them.

// sum[i] += x[i]. Precondition: equal sizes.
void AddInto(std::span<float> sum, std::span<const float> x);

// x[i] *= factor. A factor of 0 gives zeros even for NaN and infinity, so that a member without
// samples adds nothing.
void Scale(std::span<float> x, float factor);

// Precondition of all functions below: `bytes` has EncodedBytes(format, values.size()) bytes.
void Encode(WireFormat format, std::span<const float> values, std::span<uint8_t> bytes);
// Accepts any bytes.
void Decode(WireFormat format, std::span<const uint8_t> bytes, std::span<float> values);
// sum[i] += decoded[i].
void DecodeAndAdd(WireFormat format, std::span<const uint8_t> bytes, std::span<float> sum);

// Error feedback: encodes values[i] + residual[i], then stores in `residual` what the encoding
// lost, to be added the next time; 0 where that is not finite. So over many calls only the last
// residual is lost. Precondition: `residual` has the size of `values`.
void EncodeWithFeedback(WireFormat format, std::span<const float> values, std::span<float> residual,
                        std::span<uint8_t> bytes);

}  // namespace covey
