// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"

namespace covey::server {

// Bytes per second that the data loops of a server share: a token bucket. It fills at the rate, and
// never holds more than the rate gives in kDepth. A caller that finds something in it may take any
// number of bytes, also more than there are; it is empty then until the rate has made up for them.
// So a request of any size passes once the bucket is not empty. Over any time, the bytes taken are
// at most what the rate gives in this time and kDepth, and one request of each loop.
//
// It also tells refused callers when to come again, one after the other (Promise).
//
// Thread-safe. Owned by the process, outlives the loops. Its time is that of MonotonicNow.
class TokenBucket {
 public:
  static constexpr absl::Duration kDepth = absl::Milliseconds(500);
  // The queue of promises is at most this long. Longer, and what was promised to clients that died
  // would keep others away; shorter, and crowds of clients would send everything many times.
  static constexpr absl::Duration kPromisesMax = absl::Seconds(4);

  // Precondition: the rate is at least 1. The bucket is full.
  explicit TokenBucket(uint64_t bytes_per_second);
  TokenBucket(const TokenBucket&) = delete;

  uint64_t bytes_per_second() const { return bytes_per_second_; }
  bool IsEmpty(absl::Time now) const;
  void Take(absl::Time now, uint64_t bytes);
  // When a caller that wanted these bytes should come again: once what is taken, and what was
  // promised before, is made up for. The bytes are kept for nobody: a caller that comes when the
  // bucket is not empty may take.
  absl::Duration Promise(absl::Time now, uint64_t bytes);

 private:
  int64_t NanosecondsFor(uint64_t bytes) const;

  // Constant after construction.
  const uint64_t bytes_per_second_;

  // Shared by the loops. In ns of the caller's clock: the bucket is empty until then; if that is
  // past, it has filled since then. And when the last promise is kept.
  std::atomic<int64_t> empty_until_;
  std::atomic<int64_t> promised_until_;
};

}  // namespace covey::server
