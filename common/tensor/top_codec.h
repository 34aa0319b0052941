// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace covey {

// One block of kTopBlock: KeptOfBlock elements of it, those of the largest magnitudes and of equal
// ones the first, in growing order: the block's scale, a byte for the place of each, then their
// bytes, as in a block of kFloat8Block (scaled_codec.h). Used by codec.cc for each block.
//
// Pure and thread-safe; any alignment. An element that is not finite makes the whole block NaN when
// decoded.

// Precondition of both: values.size() is at most kBlockElements, and `bytes` has
// EncodedBytes(kTopBlock, values.size()) bytes.
void EncodeTopBlock(std::span<const float> values, std::span<uint8_t> bytes);
// Accepts any bytes; a place outside the block is ignored.
void DecodeTopBlock(std::span<const uint8_t> bytes, std::span<float> values);

}  // namespace covey
