// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/process/local_clock.h"

#include <cmath>
#include <cstdlib>

#include "common/base/check.h"

namespace covey::sim {

LocalClock::LocalClock(int64_t drift) : drift_(drift) { COVEY_CHECK(std::abs(drift) <= kDriftMax); }

int64_t LocalClock::Drifted(int64_t now_ns) const { return now_ns + now_ns * drift_ / kParts; }

absl::Time LocalClock::Read(absl::Time now) const {
  if (drift_ == 0) return now - lost_;
  return absl::FromUnixNanos(Drifted(absl::ToUnixNanos(now))) - lost_;
}

absl::Time LocalClock::WhenItReads(absl::Time local) const {
  const absl::Time without_pauses = local + lost_;
  if (drift_ == 0 || without_pauses <= absl::UnixEpoch() ||
      without_pauses == absl::InfiniteFuture()) {
    return without_pauses;
  }
  const absl::Duration since = absl::Ceil(without_pauses - absl::UnixEpoch(), absl::Nanoseconds(1));
  const int64_t wanted = absl::ToInt64Nanoseconds(since);
  int64_t now_ns = static_cast<int64_t>(static_cast<double>(wanted) * kParts /
                                        static_cast<double>(kParts + drift_));
  while (Drifted(now_ns) < wanted) ++now_ns;
  while (Drifted(now_ns - 1) >= wanted) --now_ns;
  return absl::FromUnixNanos(now_ns);
}

}  // namespace covey::sim
