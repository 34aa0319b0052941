// SPDX-License-Identifier: Apache-2.0
#include "common/optimizer/portable_math.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>

namespace covey {
namespace {

template <size_t n>
double Polynomial(const double (&coefficients)[n], double x) {
  double sum = 0;
  for (size_t i = n; i-- > 0;) sum = sum * x + coefficients[i];
  return sum;
}

// Natural logarithm of a positive, normal x; relative error about 1e-15.
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

}  // namespace

double Power(double base, uint64_t exponent) {
  double result = 1;
  for (double square = base; exponent != 0; exponent >>= 1, square *= square) {
    if (exponent & 1) result *= square;
  }
  return result;
}

double CosineOfPi(double x) {
  // cos(pi x) = sin(pi (1/2 - x)), an odd series, in an angle of at most pi/2: the terms after
  // angle^21 are below 1e-17.
  const double angle = std::numbers::pi * (0.5 - x);
  const double angle_squared = angle * angle;
  double series = 1;
  for (int n = 21; n >= 3; n -= 2) series = 1 - series * angle_squared / (n * (n - 1));
  return angle * series;
}

// Algorithm AS 241 (PPND16), Wichura 1988: rational functions, one for the center and two for the
// tails.
double NormalQuantile(double p) {
  constexpr double kCentralNumerator[] = {3.3871328727963666080e0, 1.3314166789178437745e2,
                                          1.9715909503065514427e3, 1.3731693765509461125e4,
                                          4.5921953931549871457e4, 6.7265770927008700853e4,
                                          3.3430575583588128105e4, 2.5090809287301226727e3};
  constexpr double kCentralDenominator[] = {1.0,
                                            4.2313330701600911252e1,
                                            6.8718700749205790830e2,
                                            5.3941960214247511077e3,
                                            2.1213794301586595867e4,
                                            3.9307895800092710610e4,
                                            2.8729085735721942674e4,
                                            5.2264952788528545610e3};
  constexpr double kMiddleNumerator[] = {1.42343711074968357734e0,  4.63033784615654529590e0,
                                         5.76949722146069140550e0,  3.64784832476320460504e0,
                                         1.27045825245236838258e0,  2.41780725177450611770e-1,
                                         2.27238449892691845833e-2, 7.74545014278341407640e-4};
  constexpr double kMiddleDenominator[] = {1.0,
                                           2.05319162663775882187e0,
                                           1.67638483018380384940e0,
                                           6.89767334985100004550e-1,
                                           1.48103976427480074590e-1,
                                           1.51986665636164571966e-2,
                                           5.47593808499534494600e-4,
                                           1.05075007164441684324e-9};
  constexpr double kTailNumerator[] = {6.65790464350110377720e0,  5.46378491116411436990e0,
                                       1.78482653991729133580e0,  2.96560571828504891230e-1,
                                       2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                       2.71155556874348757815e-5, 2.01033439929228813265e-7};
  constexpr double kTailDenominator[] = {1.0,
                                         5.99832206555887937690e-1,
                                         1.36929880922735805310e-1,
                                         1.48753612908506148525e-2,
                                         7.86869131145613259100e-4,
                                         1.84631831751005468180e-5,
                                         1.42151175831644588870e-7,
                                         2.04426310338993978564e-15};

  const double q = p - 0.5;
  if (std::abs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * Polynomial(kCentralNumerator, r) / Polynomial(kCentralDenominator, r);
  }
  const double r = std::sqrt(-NaturalLogarithm(q < 0 ? p : 1 - p));
  const double x =
      r <= 5 ? Polynomial(kMiddleNumerator, r - 1.6) / Polynomial(kMiddleDenominator, r - 1.6)
             : Polynomial(kTailNumerator, r - 5) / Polynomial(kTailDenominator, r - 5);
  return q < 0 ? -x : x;
}

}  // namespace covey
