#include "server/optimizer/portable_math.h"

#include <bit>
#include <cstdint>
#include <numbers>

namespace covey::server {

double Power(double base, uint64_t exponent) {
  double result = 1;
  for (double square = base; exponent != 0; exponent >>= 1, square *= square) {
    if (exponent & 1) result *= square;
  }
  return result;
}

double NaturalLogarithm(double x) {
  // x = mantissa * 2^exponent with the mantissa in [sqrt(1/2), sqrt(2)).
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double mantissa = std::bit_cast<double>((bits & 0x000fffffffffffff) | 0x3ff0000000000000);
  if (mantissa > std::numbers::sqrt2) {
    mantissa *= 0.5;
    ++exponent;
  }
  // log(mantissa) = 2 atanh(t) = 2 (t + t^3/3 + t^5/5 + …), |t| < 0.172: the terms after t^21 are
  // below 1e-18.
  const double t = (mantissa - 1) / (mantissa + 1);
  const double t_squared = t * t;
  double series = 0;
  for (int n = 21; n >= 1; n -= 2) series = series * t_squared + 1.0 / n;
  return exponent * std::numbers::ln2 + 2 * t * series;
}

double CosineOfPi(double x) {
  // cos(pi x) = sin(pi (1/2 - x)), an odd series in an angle of at most pi/2: the terms after
  // angle^21 are below 1e-17.
  const double angle = std::numbers::pi * (0.5 - x);
  const double angle_squared = angle * angle;
  double series = 1;
  for (int n = 21; n >= 3; n -= 2) series = 1 - series * angle_squared / (n * (n - 1));
  return angle * series;
}

}  // namespace covey::server
