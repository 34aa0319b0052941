// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/tensor/wire_format.h"

namespace covey {

// Floats to the bytes of a wire format and back, each function one pass over memory.
//
// Pure and thread-safe; any alignment; spans of one call do not overlap. Deterministic: one IEEE
// operation per element and step, in a fixed order, so that vector instructions change the speed
// and never the bits (except the payload of a NaN). Bound by memory: Encode and Decode move 4 bytes
// plus the encoded size per element. kernels_bench.cc measures them.

// Precondition of all functions: `bytes` has EncodedBytes(format, values.size()) bytes.
void Encode(WireFormat format, std::span<const float> values, std::span<uint8_t> bytes);
// Accepts any bytes.
void Decode(WireFormat format, std::span<const uint8_t> bytes, std::span<float> values);
// sum[i] += decoded[i].
void DecodeAndAdd(WireFormat format, std::span<const uint8_t> bytes, std::span<float> sum);

// The same of rows of `width` elements each, one after the other. Preconditions: `rows` has a
// multiple of the width, and `bytes` has their EncodedRowBytes.
void EncodeRows(WireFormat format, size_t width, std::span<const float> rows,
                std::span<uint8_t> bytes);
void DecodeRows(WireFormat format, size_t width, std::span<const uint8_t> bytes,
                std::span<float> rows);

// Error feedback: encodes values[i] + residual[i], then stores in `residual` what the encoding
// lost, to be added the next time; 0 where that is not finite. So over many calls only the last
// residual is lost. Precondition: `residual` has the size of `values`.
void EncodeWithFeedback(WireFormat format, std::span<const float> values, std::span<float> residual,
                        std::span<uint8_t> bytes);
// Formats that leave out most elements, so that without error feedback most of a sum is lost.
constexpr bool NeedsFeedback(WireFormat format) { return format == WireFormat::kTopBlock; }

}  // namespace covey
