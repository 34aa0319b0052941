// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "common/tensor/wire_format.h"

namespace covey {

// Floats to halves or bfloat16, rounded at random to one of the two neighbors, so that the expected
// result is the float itself. So values that are rounded after each of many small steps go as far,
// on average, as values that are not, where rounding to nearest loses every step of less than half
// a unit in the last place (Gupta et al., "Deep Learning with Limited Numerical Precision", 2015).
//
// The rule is that of FBGEMM's rows of halves: uniform random bits are added to those that the
// format has no place for, and the sum is cut off. FBGEMM's is wrong for subnormal halves, which
// are here rounded as multiples of 2^-24. Floats that the format has stay as they are.
//
// The random bits of element i are a hash of `stream` and i, so that the same call gives the same
// bits on every machine. 16 bits: a probability is exact, except for subnormal halves, where it is
// at most 2^-16 too small. Elements whose streams differ, or whose places do, are rounded
// independently of each other.
//
// The upper neighbor of what lies between the largest finite element and the next power of two is
// infinity, and beyond lies infinity. NaN becomes quiet, as in codec.h.
//
// Pure and thread-safe; any alignment; the spans do not overlap.
//
// Preconditions (checked): `format` is kFloat16 or kBfloat16, and `bytes` has EncodedBytes(format,
// values.size()) bytes.
void EncodeStochastic(WireFormat format, uint64_t stream, std::span<const float> values,
                      std::span<uint8_t> bytes);

}  // namespace covey
