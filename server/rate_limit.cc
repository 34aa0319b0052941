// SPDX-License-Identifier: Apache-2.0
#include "server/rate_limit.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace covey::server {
namespace {

// The mean is over so many requests, and up to twice as many.
constexpr uint64_t kMeanOver = 64;

uint64_t FrameBytes(const Message& message) {
  uint64_t bytes = 0;
  for (const Buffer& frame : message.frames) bytes += frame.size();
  return bytes;
}

}  // namespace

absl::Status RateLimit::Check(absl::Time now) const {
  if (bucket_ == nullptr || !bucket_->IsEmpty(now)) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("this server may receive and send ", bucket_->bytes_per_second(),
                   " bytes of tensors per second, and they are used up; retry later, or allow more "
                   "with --rate-max"));
}

absl::Duration RateLimit::RetryAfter(absl::Time now, const Message& request) {
  // The reply may have more than the request: values.
  return bucket_->Promise(now, std::max(FrameBytes(request), MeanBytes()));
}

void RateLimit::Admit(absl::Time now, const Message& request) {
  if (bucket_ == nullptr) return;
  if (++requests_ == 2 * kMeanOver) {
    requests_ /= 2;
    bytes_ /= 2;
  }
  Take(now, FrameBytes(request));
}

void RateLimit::NoteSent(absl::Time now, uint64_t bytes) {
  if (bucket_ != nullptr && bytes != sent_) Take(now, bytes - sent_);
  sent_ = bytes;
}

void RateLimit::Take(absl::Time now, uint64_t bytes) {
  bytes_ += bytes;
  bucket_->Take(now, bytes);
}

}  // namespace covey::server
