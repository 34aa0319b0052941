// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

namespace covey::cli {

// The signals that a launcher handles in its loop instead of in a handler: SIGCHLD, and SIGHUP,
// SIGINT and SIGTERM, by which a person ends a run.
//
// Blocks them for the calling thread and the threads that it starts later, and leaves them blocked.
// At most one object per process, made before other threads are.
class SignalDescriptor {
 public:
  SignalDescriptor();
  ~SignalDescriptor();
  SignalDescriptor(const SignalDescriptor&) = delete;
  SignalDescriptor& operator=(const SignalDescriptor&) = delete;

  // Readable when a signal has arrived.
  int descriptor() const { return descriptor_; }
  // The next signal that has arrived, if any. Several of a kind may arrive as one. Does not block.
  std::optional<int> Take();

 private:
  const int descriptor_;
};

}  // namespace covey::cli
