// SPDX-License-Identifier: Apache-2.0
#include "server/shard/queue_budget.h"

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace covey::server {
namespace {

void ChangeSum(size_t before, size_t after, size_t& sum) {
  COVEY_CHECK(sum >= before);
  sum = sum - before + after;
}

}  // namespace

void QueueBudget::Change(const Waiting& before, const Waiting& after) {
  ChangeSum(before.gradients, after.gradients, waiting_.gradients);
  ChangeSum(before.readers, after.readers, waiting_.readers);
  ChangeSum(before.others, after.others, waiting_.others);
}

absl::Status QueueBudget::Check(Request request) const {
  size_t bytes = waiting_.others;
  if (request != Request::kAwaited) bytes += waiting_.readers;
  if (request == Request::kUnawaited) bytes += waiting_.gradients;
  if (bytes <= bytes_max_) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(bytes, " bytes wait in this loop, ", bytes_max_,
                   " are allowed; retry later, or allow more with --queued-bytes-max"));
}

}  // namespace covey::server
