#pragma once

#include <cstdint>

namespace covey::server {

// The few elementary functions that decide parameter values. The system's math library picks its
// variant by processor, and the last bit may differ between variants; two replicas of a shard, or a
// run and its repetition on another machine, must agree to the bit. These use nothing but IEEE
// arithmetic in a fixed order. Pure.

// base^exponent by repeated squaring; relative error below exponent * 2e-16.
double Power(double base, uint64_t exponent);

// Natural logarithm of a positive, normal x; relative error below 1e-14.
double NaturalLogarithm(double x);

// Cosine of pi * x for x in [0, 1]; absolute error below 1e-15.
double CosineOfPi(double x);

}  // namespace covey::server
