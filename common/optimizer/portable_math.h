// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace covey {

// Elementary functions that influence parameter values. The system's math library picks its variant
// by processor, and the last bit may differ between variants; but two replicas of a shard, or two
// runs on different machines, must agree in every bit. These functions use only IEEE arithmetic in
// a fixed order. Pure.

// base^exponent by repeated squaring; relative error below exponent * 2e-16.
double Power(double base, uint64_t exponent);

// Cosine of pi * x for x in [0, 1]; absolute error below 1e-15.
double CosineOfPi(double x);

// The x below which a standard normal variable lies with the given probability, in (0, 1); relative
// error below 1e-14. One number in, one out: a random element needs one draw only.
double NormalQuantile(double probability);

}  // namespace covey
