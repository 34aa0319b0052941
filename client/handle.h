// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/operation_result.h"
#include "common/base/one_shot.h"

namespace covey::client {

// An operation in progress. Copies share it. Thread-safe.
//
// Every operation has a deadline, so Wait always returns. Dropping a handle does not end its
// operation: the operation's memory must stay valid until done().
class Handle {
 public:
  // Already done, with this result.
  explicit Handle(OperationResult result);
  // Not done until Complete.
  Handle() = default;

  bool done() const { return result_.is_set(); }
  // Blocks until the operation has ended; returns its status. OK, or the code and cause of
  // docs/PROTOCOL.md.
  absl::Status Wait() const { return result_.Wait().status; }
  // Like Wait, but gives up with DEADLINE_EXCEEDED after `timeout`; the operation continues.
  absl::Status WaitFor(absl::Duration timeout) const;
  // Precondition: done().
  OperationResult result() const;

  // Called once, by the engine that runs the operation.
  void Complete(OperationResult result) const;

 private:
  OneShot<OperationResult> result_;
};

}  // namespace covey::client
