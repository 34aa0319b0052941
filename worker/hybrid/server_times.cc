// SPDX-License-Identifier: Apache-2.0
#include "worker/hybrid/server_times.h"

#include <algorithm>

namespace covey::worker {

void ServerTimes::Begin(absl::Time now) {
  Span& newest = spans_.front();
  // Times that touch are one.
  if (newest.end >= now) {
    newest.end = absl::InfiniteFuture();
    return;
  }
  if (newest.begin < newest.end) std::move_backward(spans_.begin(), spans_.end() - 1, spans_.end());
  newest = {.begin = now, .end = absl::InfiniteFuture()};
}

void ServerTimes::End(absl::Time now) {
  Span& newest = spans_.front();
  if (newest.end == absl::InfiniteFuture()) newest.end = now;
}

void ServerTimes::RunOver(absl::Time now) {
  Span& newest = spans_.front();
  if (newest.begin < now && newest.end == now) newest.end = absl::InfiniteFuture();
}

absl::Duration ServerTimes::Within(absl::Time from, absl::Time to) const {
  absl::Duration sum = absl::ZeroDuration();
  for (const Span& span : spans_) {
    const absl::Time begin = std::max(span.begin, from);
    const absl::Time end = std::min(span.end, to);
    if (begin < end) sum += end - begin;
  }
  return sum;
}

}  // namespace covey::worker
