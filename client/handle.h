// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/operation_result.h"
#include "common/base/set_once.h"

namespace covey {

class LoopRunner;

}  // namespace covey

namespace covey::client {

// An operation in progress. Copies share it. Thread-safe.
//
// A thread that waits does the client's work meanwhile, unless another thread does it already: it
// sends, receives and completes operations, this one and others.
//
// Every operation has a deadline, so Wait always returns. Dropping a handle does not end its
// operation: the operation's memory must stay valid until done().
class Handle {
 public:
  // Already done, with this result.
  explicit Handle(OperationResult result);
  // Not done until Complete.
  Handle() = default;
  // The same; `runner` is that of the loop which completes the operation.
  explicit Handle(std::shared_ptr<LoopRunner> runner);

  bool done() const { return result_.is_set(); }
  // Blocks until the operation has ended; returns its status. OK, or the code and cause of
  // docs/PROTOCOL.md.
  absl::Status Wait() const;
  // Like Wait, but gives up with DEADLINE_EXCEEDED after `timeout`; the operation continues.
  absl::Status WaitFor(absl::Duration timeout) const;
  // Calls `call` once the operation has ended: now, if it has, otherwise on a thread of the library
  // or one that waits for a handle. It must neither block nor use handles and clients.
  void OnDone(std::function<void()> call) const { result_.OnSet(std::move(call)); }
  // Precondition: done().
  OperationResult result() const;

  // Called once, by the engine that runs the operation.
  void Complete(OperationResult result) const;

 private:
  void RunLoopUntilDone(absl::Time until) const;

  SetOnce<OperationResult> result_;
  std::shared_ptr<LoopRunner> runner_;  // may be null
};

}  // namespace covey::client
