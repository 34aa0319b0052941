// SPDX-License-Identifier: Apache-2.0
#include "server/queue_budget.h"

#include "absl/strings/str_cat.h"

namespace covey::server {

absl::Status QueueBudget::Check(absl::FunctionRef<size_t()> count) {
  if (++requests_since_count_ >= kRequestsPerCount) SetCount(count());
  if (bytes_ <= bytes_max_) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(bytes_, " bytes wait in this loop, ", bytes_max_,
                   " are allowed; retry later, or allow more with --queued-bytes-max"));
}

void QueueBudget::SetCount(size_t bytes) {
  requests_since_count_ = 0;
  bytes_ = bytes;
}

}  // namespace covey::server
