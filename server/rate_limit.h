// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/net/message.h"
#include "server/token_bucket.h"

namespace covey::server {

// A data loop's part in the rate that its server may have (TokenBucket): bytes in the frames of
// pushes and pulls that it admits, and of its replies. Frames of requests that it refuses do not
// count, or a crowd of repeats would leave nothing for anybody.
//
// Actor-confined.
class RateLimit {
 public:
  // Null: there is no limit.
  explicit RateLimit(std::shared_ptr<TokenBucket> bucket) : bucket_(std::move(bucket)) {}

  // From now on; null: there is no limit. What refused senders were told stays true or becomes
  // late; what they were not yet charged for is taken from the new bucket.
  void Use(std::shared_ptr<TokenBucket> bucket) { bucket_ = std::move(bucket); }

  // RESOURCE_EXHAUSTED: the rate has been used up.
  absl::Status Check(absl::Time now) const;
  // When the sender of a request that was refused should send it again.
  absl::Duration RetryAfter(absl::Time now, const Message& request);
  void Admit(absl::Time now, const Message& request);
  // `bytes`: those of all replies since the loop's start.
  void NoteSent(absl::Time now, uint64_t bytes);

 private:
  // Of a request and its reply, as they were lately.
  uint64_t MeanBytes() const { return requests_ == 0 ? 0 : bytes_ / requests_; }
  void Take(absl::Time now, uint64_t bytes);

  std::shared_ptr<TokenBucket> bucket_;
  // Of the last requests; both are halved now and then.
  uint64_t requests_ = 0;
  uint64_t bytes_ = 0;
  uint64_t sent_ = 0;
};

}  // namespace covey::server
