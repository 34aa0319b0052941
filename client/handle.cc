// SPDX-License-Identifier: Apache-2.0
#include "client/handle.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace covey::client {

Handle::Handle(OperationResult result) { Complete(std::move(result)); }

absl::Status Handle::WaitFor(absl::Duration timeout) const {
  if (const OperationResult* result = result_.WaitFor(timeout)) return result->status;
  return absl::DeadlineExceededError(absl::StrCat("not done within ", absl::FormatDuration(timeout),
                                                  "; it continues until its own deadline"));
}

OperationResult Handle::result() const {
  const OperationResult* result = result_.Get();
  COVEY_CHECK(result != nullptr);
  return *result;
}

void Handle::Complete(OperationResult result) const { result_.Set(std::move(result)); }

}  // namespace covey::client
