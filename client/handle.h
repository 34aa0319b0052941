#pragma once

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/operation.h"
#include "common/base/mutex.h"

namespace covey::client {

// An operation under way. Copies share it. Thread-safe.
//
// Every operation has a deadline, so Wait always returns. Dropping a handle does not end its
// operation: the memory it was given must stay valid until done().
class Handle {
 public:
  // Done already, with this outcome.
  explicit Handle(OperationResult result);
  // Not done until Complete.
  Handle() : state_(std::make_shared<State>()) {}

  bool done() const;
  // Blocks until the operation is over; its status. OK, or the code and cause of docs/PROTOCOL.md.
  absl::Status Wait() const;
  // Like Wait, but gives up with DEADLINE_EXCEEDED after `timeout`; the operation goes on.
  absl::Status WaitFor(absl::Duration timeout) const;
  // Precondition: done().
  OperationResult result() const;

  // For whoever runs the operation; once.
  void Complete(OperationResult result) const;

 private:
  struct State {
    Mutex mutex;
    CondVar changed;
    bool done ABSL_GUARDED_BY(mutex) = false;
    OperationResult result ABSL_GUARDED_BY(mutex);
  };

  std::shared_ptr<State> state_;
};

}  // namespace covey::client
