// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace covey::cli {

// Limits restarts. A process that ends is restarted every time, unless it ends soon after each of
// its starts: then only a few times. Pure.
class RestartLimit {
 public:
  static constexpr int kQuickEndsMax = 5;
  static constexpr absl::Duration kQuick = absl::Seconds(10);

  // `name` has ended after `lived`: returns whether it may be restarted. False from the
  // kQuickEndsMax-th time in a row that it lived shorter than kQuick.
  bool Allows(absl::string_view name, absl::Duration lived) {
    int& quick_ends = quick_ends_[std::string(name)];
    if (quick_ends < kQuickEndsMax) quick_ends = lived < kQuick ? quick_ends + 1 : 0;
    return quick_ends < kQuickEndsMax;
  }

 private:
  std::map<std::string, int> quick_ends_;
};

}  // namespace covey::cli
