// SPDX-License-Identifier: Apache-2.0
#include "client/cli/console/figures.h"

#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace covey::cli {

std::string ShowCount(uint64_t value) {
  std::string digits = absl::StrCat(value);
  for (size_t place = digits.size(); place > 3; place -= 3) digits.insert(place - 3, 1, ',');
  return digits;
}

std::string ShowBytes(uint64_t bytes) {
  constexpr std::array<const char*, 4> kUnits = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return absl::StrCat(bytes, " B");
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return absl::StrFormat("%.*f %s", value < 10 ? 1 : 0, value, kUnits[unit]);
}

std::string ShowNumber(double value) {
  if (!std::isfinite(value)) return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
  const double size = std::abs(value);
  if (size >= 1e15) return absl::StrFormat("%.3g", value);
  if (size >= 1000) {
    const double unit = std::pow(10, std::floor(std::log10(size)) - 2);
    const uint64_t rounded = static_cast<uint64_t>(std::round(size / unit) * unit + 0.5);
    return absl::StrCat(value < 0 ? "-" : "", ShowCount(rounded));
  }
  return absl::StrFormat("%.3g", value);
}

std::string ShowSeconds(double seconds) {
  if (seconds < 10) return absl::StrFormat("%.1f s", seconds);
  const auto whole = static_cast<uint64_t>(seconds + 0.5);
  if (whole < 120) return absl::StrCat(whole, " s");
  if (whole < 7200) return absl::StrCat(whole / 60, " min ", whole % 60, " s");
  return absl::StrCat(whole / 3600, " h ", whole / 60 % 60, " min");
}

}  // namespace covey::cli
