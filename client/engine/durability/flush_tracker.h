// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/runtime/actor.h"

namespace covey::client {

// Pending flushes, and the pushes lost since the last one. Actor-confined. Deterministic.
class FlushTracker {
 public:
  using Done = std::function<void(absl::Time, const absl::Status&, Outbox&)>;
  struct Flush {
    // Waits for unanswered pushes of operations with smaller numbers; 0 = for none of them.
    uint64_t before_operation = 0;
    // Waits for pushes with smaller request ids that were received and are not durable.
    uint64_t before_request = 0;
    absl::Time deadline;
    Done done;
  };

  void Add(Flush flush) { pending_.push_back(std::move(flush)); }

  // A push that a server had received is lost (DATA_LOSS), or may be (ABORTED). The next flush
  // reports it; among several it names the first one that is certainly lost.
  void NoteLost(const absl::Status& why);

  // Ends each flush that has nothing left to wait for or whose deadline has expired. `left`
  // describes what a flush still waits for; OK = nothing. `done` may start operations and flushes.
  void Check(absl::Time now, absl::FunctionRef<absl::Status(const Flush&)> left, Outbox& outbox);
  void FailAll(absl::Time now, const absl::Status& status, Outbox& outbox);

  // InfiniteFuture() when no flush is pending.
  absl::Time next_deadline() const;

 private:
  // The result of a flush that has nothing left to wait for; losses are reported once.
  absl::Status TakeLosses();

  std::vector<Flush> pending_;
  absl::Status lost_;  // the loss to report
  uint64_t lost_count_ = 0;
};

}  // namespace covey::client
