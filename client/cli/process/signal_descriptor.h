// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <optional>

namespace covey::cli {

// Signals that a command handles in its loop instead of in a handler.
//
// Blocks them for the calling thread and the threads that it starts later, and leaves them blocked.
// At most one object per process, made before other threads are: a thread that does not block a
// signal may take it instead, gRPC's threads too.
class SignalDescriptor {
 public:
  explicit SignalDescriptor(std::initializer_list<int> signals);
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
