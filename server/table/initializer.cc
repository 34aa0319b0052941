// SPDX-License-Identifier: Apache-2.0
#include "server/table/initializer.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "common/base/random.h"
#include "common/optimizer/portable_math.h"

namespace covey::server {

void Initialize(const InitializerConfig& config, uint64_t first_element, std::span<float> values) {
  const uint64_t stream = MixBits(config.seed);
  // A uniform number in (0, 1) for element i, one of 2^52, symmetric around 1/2.
  const auto uniform = [&](size_t i) {
    const uint64_t bits = MixBits(stream ^ MixBits(first_element + i)) >> 12;
    return (static_cast<double>(bits) + 0.5) * 0x1p-52;
  };
  const double a = config.a;
  const double b = config.b;
  switch (config.kind) {
    case InitializerKind::kZeros:
    case InitializerKind::kGiven:  // they come later
      std::fill(values.begin(), values.end(), 0.0f);
      return;
    case InitializerKind::kConstant:
      std::fill(values.begin(), values.end(), config.a);
      return;
    case InitializerKind::kUniform: {
      // Rounding to float may reach b, which the interval excludes.
      const float greatest = std::nextafter(config.b, config.a);
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = std::min(static_cast<float>(a + (b - a) * uniform(i)), greatest);
      }
      return;
    }
    case InitializerKind::kNormal:
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<float>(a + b * NormalQuantile(uniform(i)));
      }
      return;
  }
}

}  // namespace covey::server
