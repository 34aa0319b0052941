#include "server/table/initializer.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/random.h"
#include "common/optimizer/portable_math.h"

namespace covey::server {
namespace {

absl::Status OutOfRange(absl::string_view what, float value, absl::string_view choose) {
  return absl::InvalidArgumentError(
      absl::StrCat("initializer: ", what, " is ", value, "; choose ", choose));
}

}  // namespace

absl::Status InitializerConfig::Validate() const {
  switch (kind) {
    case InitializerKind::kZeros:
      return absl::OkStatus();
    case InitializerKind::kConstant:
      if (!std::isfinite(a)) return OutOfRange("constant a", a, "a finite value");
      return absl::OkStatus();
    case InitializerKind::kUniform:
      if (!std::isfinite(a)) return OutOfRange("uniform a", a, "a finite value");
      if (!std::isfinite(b) || b <= a) return OutOfRange("uniform b", b, "a finite value above a");
      return absl::OkStatus();
    case InitializerKind::kNormal:
      if (!std::isfinite(a)) return OutOfRange("normal a", a, "a finite mean");
      if (!std::isfinite(b) || b < 0) {
        return OutOfRange("normal b", b, "a finite standard deviation of at least 0");
      }
      return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("initializer: kind ", static_cast<int>(kind),
                                                 " is unknown; choose one of InitializerKind"));
}

void Initialize(const InitializerConfig& config, uint64_t first_element, std::span<float> values) {
  const uint64_t stream = MixBits(config.seed);
  // A uniform number in (0, 1) for element i: one of 2^52, symmetric around 1/2.
  const auto uniform = [&](size_t i) {
    const uint64_t bits = MixBits(stream ^ MixBits(first_element + i)) >> 12;
    return (static_cast<double>(bits) + 0.5) * 0x1p-52;
  };
  const double a = config.a;
  const double b = config.b;
  switch (config.kind) {
    case InitializerKind::kZeros:
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
