#include "client/handle.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace covey::client {

Handle::Handle(OperationResult result) : Handle() { Complete(std::move(result)); }

bool Handle::done() const {
  MutexLock lock(state_->mutex);
  return state_->done;
}

absl::Status Handle::Wait() const {
  MutexLock lock(state_->mutex);
  while (!state_->done) state_->changed.WaitFor(state_->mutex, absl::InfiniteDuration());
  return state_->result.status;
}

absl::Status Handle::WaitFor(absl::Duration timeout) const {
  const auto until = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(timeout);
  MutexLock lock(state_->mutex);
  while (!state_->done) {
    const auto left = until - std::chrono::steady_clock::now();
    if (left.count() <= 0) {
      return absl::DeadlineExceededError(absl::StrCat("not done within ",
                                                      absl::FormatDuration(timeout),
                                                      "; it goes on until its own deadline"));
    }
    state_->changed.WaitFor(state_->mutex, absl::FromChrono(left));
  }
  return state_->result.status;
}

OperationResult Handle::result() const {
  MutexLock lock(state_->mutex);
  COVEY_CHECK(state_->done);
  return state_->result;
}

void Handle::Complete(OperationResult result) const {
  MutexLock lock(state_->mutex);
  COVEY_CHECK(!state_->done);
  state_->result = std::move(result);
  state_->done = true;
  state_->changed.NotifyAll();
}

}  // namespace covey::client
