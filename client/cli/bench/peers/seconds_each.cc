// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/peers/seconds_each.h"

#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_split.h"

namespace covey::cli {

absl::StatusOr<std::vector<double>> MicrosecondsIn(absl::string_view output) {
  std::vector<double> microseconds;
  for (absl::string_view line : absl::StrSplit(output, '\n')) {
    const size_t begin = line.find('{');
    if (begin == absl::string_view::npos) continue;
    line.remove_prefix(begin);
    const auto json =
        nlohmann::json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) continue;
    const auto each = json.find("seconds_each");
    if (each == json.end() || !each->is_array()) continue;
    microseconds.clear();
    for (const nlohmann::json& seconds : *each) {
      if (seconds.is_number()) microseconds.push_back(1e6 * seconds.get<double>());
    }
  }
  if (microseconds.empty()) return absl::NotFoundError("the program printed no times");
  return microseconds;
}

}  // namespace covey::cli
