#pragma once

#include <span>

namespace covey::worker {

// Arithmetic of the collectives. Bit-exact: one IEEE operation per element and no other order, so
// that vector instructions change the speed and never the bits. Bound by memory: 12 bytes moved per
// element added.

// into[i] = other[i] + into[i]. Precondition: equal sizes; the spans do not overlap.
void AddInto(std::span<float> into, std::span<const float> other);

// values[i] *= factor; a factor of 0 gives zeros whatever was there, so that a member without
// samples adds nothing.
void Scale(std::span<float> values, float factor);

}  // namespace covey::worker
