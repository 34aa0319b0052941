// SPDX-License-Identifier: Apache-2.0
#include "server/token_bucket.h"

#include <algorithm>
#include <limits>

#include "common/base/check.h"

namespace covey::server {
namespace {

constexpr int64_t kLongAgo = std::numeric_limits<int64_t>::min() / 2;
constexpr double kNanosecondsPerSecond = 1e9;
// Of one request, so that sums do not overflow; no request is as large.
constexpr double kCostMax = 1e15;

}  // namespace

TokenBucket::TokenBucket(uint64_t bytes_per_second)
    : bytes_per_second_(bytes_per_second), empty_until_(kLongAgo), promised_until_(kLongAgo) {
  COVEY_CHECK(bytes_per_second > 0);
}

int64_t TokenBucket::NanosecondsFor(uint64_t bytes) const {
  const double cost =
      static_cast<double>(bytes) * kNanosecondsPerSecond / static_cast<double>(bytes_per_second_);
  return static_cast<int64_t>(std::min(cost, kCostMax));
}

bool TokenBucket::IsEmpty(absl::Time now) const {
  return empty_until_.load() > absl::ToUnixNanos(now);
}

void TokenBucket::Take(absl::Time now, uint64_t bytes) {
  const int64_t full_since = absl::ToUnixNanos(now - kDepth);
  const int64_t cost = NanosecondsFor(bytes);
  int64_t before = empty_until_.load();
  while (!empty_until_.compare_exchange_weak(before, std::max(before, full_since) + cost)) {
  }
}

absl::Duration TokenBucket::Promise(absl::Time now, uint64_t bytes) {
  const int64_t empty_until = empty_until_.load();
  const int64_t cost = NanosecondsFor(bytes);
  const int64_t latest = empty_until + absl::ToInt64Nanoseconds(kPromisesMax);
  int64_t before = promised_until_.load();
  int64_t turn = 0;
  do {
    turn = std::min(std::max(before, empty_until), latest);
  } while (!promised_until_.compare_exchange_weak(before, turn + cost));
  return std::max(absl::FromUnixNanos(turn) - now, absl::ZeroDuration());
}

}  // namespace covey::server
