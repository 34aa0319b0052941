// SPDX-License-Identifier: Apache-2.0
#include "common/grouping/stragglers/evidence_text.h"

#include "absl/strings/str_format.h"

namespace covey {

std::string ShowTime(double seconds) {
  if (seconds < 1e-3) return absl::StrFormat("%.3g us", seconds * 1e6);
  if (seconds < 1) return absl::StrFormat("%.3g ms", seconds * 1e3);
  return absl::StrFormat("%.3g s", seconds);
}

std::string ShowPercent(double part) { return absl::StrFormat("%.0f %%", part * 100); }

}  // namespace covey
