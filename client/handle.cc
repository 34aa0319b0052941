// SPDX-License-Identifier: Apache-2.0
#include "client/handle.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/runtime/loop_runner.h"

namespace covey::client {

Handle::Handle(OperationResult result) { Complete(std::move(result)); }

Handle::Handle(std::shared_ptr<LoopRunner> runner) : runner_(std::move(runner)) {}

void Handle::RunLoopUntilDone(absl::Time until) const {
  if (runner_ != nullptr) runner_->RunUntil([this] { return done(); }, until);
}

absl::Status Handle::Wait() const {
  RunLoopUntilDone(absl::InfiniteFuture());
  return result_.Wait().status;
}

absl::Status Handle::WaitFor(absl::Duration timeout) const {
  const absl::Time until = MonotonicNow() + timeout;
  RunLoopUntilDone(until);
  const absl::Duration left = std::max(absl::ZeroDuration(), until - MonotonicNow());
  if (const OperationResult* result = result_.WaitFor(left)) return result->status;
  return absl::DeadlineExceededError(absl::StrCat("not done within ", absl::FormatDuration(timeout),
                                                  "; it continues until its own deadline"));
}

OperationResult Handle::result() const {
  const OperationResult* result = result_.Get();
  COVEY_CHECK(result != nullptr);
  return *result;
}

void Handle::Complete(OperationResult result) const {
  result_.Set(std::move(result));
  if (runner_ != nullptr) runner_->ResultArrived();
}

}  // namespace covey::client
