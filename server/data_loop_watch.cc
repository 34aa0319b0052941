// SPDX-License-Identifier: Apache-2.0
#include "server/data_loop_watch.h"

#include <algorithm>

namespace covey::server {

void DataLoopWatch::Start(absl::Time now) {
  for (absl::Time& heard : heard_) heard = std::min(heard, now);
}

void DataLoopWatch::DiscountPause(absl::Time now, absl::Duration pause) {
  for (absl::Time& heard : heard_) {
    if (heard != absl::InfiniteFuture()) heard = std::min(now, heard + pause);
  }
}

std::optional<DataLoopWatch::SilentLoop> DataLoopWatch::Longest(absl::Time now) const {
  const auto first = std::min_element(heard_.begin(), heard_.end());
  if (first == heard_.end() || *first == absl::InfiniteFuture()) return std::nullopt;
  return SilentLoop{.loop = static_cast<uint32_t>(first - heard_.begin()) + 1,
                    .silence = now - *first};
}

absl::Time DataLoopWatch::NextDeadline() const {
  const auto first = std::min_element(heard_.begin(), heard_.end());
  return first == heard_.end() ? absl::InfiniteFuture() : *first + kSilentMax;
}

}  // namespace covey::server
