// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/synthetic/quadratic.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/check.h"

namespace covey::synthetic {
namespace {

// The optimum repeats with this period, because reading another array would cost more than the sum.
constexpr size_t kPeriod = 64;

}  // namespace

Quadratic::Quadratic(const Options& options)
    : shift_(static_cast<float>(options.spread *
                                (2.0 * options.rank - (static_cast<double>(options.size) - 1)) /
                                options.size)) {}

float Quadratic::Optimum(size_t tensor, size_t element) {
  return 1 + static_cast<float>((element + 7 * tensor) % kPeriod) / kPeriod;
}

void Quadratic::WriteGradient(size_t tensor, std::span<const float> values,
                              std::span<float> gradient) const {
  COVEY_CHECK(values.size() == gradient.size());
  float optimum[kPeriod];
  for (size_t i = 0; i < kPeriod; ++i) optimum[i] = Optimum(tensor, i) + shift_;
  for (size_t first = 0; first < values.size(); first += kPeriod) {
    const size_t count = std::min(kPeriod, values.size() - first);
    for (size_t i = 0; i < count; ++i) gradient[first + i] = values[first + i] - optimum[i];
  }
}

double Quadratic::Distance(size_t tensor, std::span<const float> values) {
  double largest = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double optimum = Optimum(tensor, i);
    const double distance = std::abs(values[i] - optimum) / optimum;
    if (std::isnan(distance)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, distance);
  }
  return largest;
}

}  // namespace covey::synthetic
