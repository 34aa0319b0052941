// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "common/base/mutex.h"

namespace grpc {
class ClientContext;
}  // namespace grpc

namespace covey {

// The calls of a gRPC channel that have begun and not ended. Lets the owner of the channel cancel
// them, and wait until their callbacks have returned. Thread-safe.
//
// gRPC's channel must not be destroyed on one of gRPC's threads: it would wait for that thread. A
// call's context holds the channel, too. So each callback releases and destroys its context before
// it ends its call, and Close returns after the last End, before anything else is destroyed.
class CallsInFlight {
 public:
  // The call with this context begins. False after Close; then it must not begin.
  bool Begin(grpc::ClientContext* context);
  // Close no longer cancels the call, so its context may be destroyed.
  void Release(grpc::ClientContext* context);
  // A call ends. Its callback uses nothing of the channel afterwards.
  void End();

  // Refuses further calls, cancels those whose contexts are not released, and blocks until every
  // call has ended. Not to be called on gRPC's threads.
  void Close();
  bool closed();

 private:
  Mutex mutex_;
  CondVar ended_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  size_t in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_set<grpc::ClientContext*> contexts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace covey
