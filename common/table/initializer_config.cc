// SPDX-License-Identifier: Apache-2.0
#include "common/table/initializer_config.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace covey {
namespace {

absl::Status OutOfRange(absl::string_view what, float value, absl::string_view choose) {
  return absl::InvalidArgumentError(
      absl::StrCat("initializer: ", what, " is ", value, "; choose ", choose));
}

}  // namespace

absl::Status InitializerConfig::Validate() const {
  switch (kind) {
    case InitializerKind::kZeros:
    case InitializerKind::kGiven:
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

}  // namespace covey
