// SPDX-License-Identifier: Apache-2.0
#include "client/step_times.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/check.h"

namespace covey::client {
namespace {

// "850 us", "1.21 ms", "2.50 s".
std::string ShowTime(double seconds) {
  const bool is_micro = seconds < 0.9995e-3;
  const bool is_milli = !is_micro && seconds < 0.9995;
  const double value = seconds * (is_micro ? 1e6 : is_milli ? 1e3 : 1);
  return absl::StrFormat("%.*f %s",
                         value < 10    ? 2
                         : value < 100 ? 1
                                       : 0,
                         value,
                         is_micro   ? "us"
                         : is_milli ? "ms"
                                    : "s");
}

// What helps, whatever the program.
absl::string_view RemedyFor(absl::string_view bottleneck) {
  if (bottleneck == "input") return " (a thread that prepares the next samples hides it)";
  if (bottleneck == "group") return " (groups of fewer members wait less)";
  if (bottleneck == "servers")
    return " (a contract that pushes less often, as local:8, waits less)";
  return "";
}

}  // namespace

absl::string_view BottleneckOf(const StepTimes& times) {
  const double largest = std::max({times.computation, times.input, times.group, times.servers});
  if (times.computation == largest) return "computation";
  if (times.input == largest) return "input";
  return times.group == largest ? "group" : "servers";
}

std::string DescribeStep(const StepTimes& times) {
  COVEY_CHECK(times.total() > 0);
  const auto share = [&times](double part) {
    return absl::StrFormat("%.0f %%", 100 * part / times.total());
  };
  std::string line = absl::StrCat(kStepSentence, ShowTime(times.total()), ": computation ",
                                  share(times.computation));
  // Many programs do not tell.
  if (times.input > 0) absl::StrAppend(&line, ", input ", share(times.input));
  const absl::string_view bottleneck = BottleneckOf(times);
  absl::StrAppend(&line, ", waiting for the group ", share(times.group), ", waiting for servers ",
                  share(times.servers), "; bottleneck: ", bottleneck, RemedyFor(bottleneck));
  return line;
}

}  // namespace covey::client
