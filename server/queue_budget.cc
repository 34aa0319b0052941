// SPDX-License-Identifier: Apache-2.0
#include "server/queue_budget.h"

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace covey::server {

void QueueBudget::Change(size_t before, size_t after) {
  COVEY_CHECK(bytes_ >= before);
  bytes_ = bytes_ - before + after;
}

void QueueBudget::ChangeHeld(size_t before, size_t after) {
  COVEY_CHECK(held_bytes_ >= before);
  held_bytes_ = held_bytes_ - before + after;
}

absl::Status QueueBudget::Check(Counted counted) const {
  const size_t bytes = counted == Counted::kAll ? bytes_ : bytes_ - held_bytes_;
  if (bytes <= bytes_max_) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(bytes, " bytes wait in this loop, ", bytes_max_,
                   " are allowed; retry later, or allow more with --queued-bytes-max"));
}

}  // namespace covey::server
