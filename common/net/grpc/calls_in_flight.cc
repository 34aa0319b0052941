// SPDX-License-Identifier: Apache-2.0
#include "common/net/grpc/calls_in_flight.h"

#include <grpcpp/grpcpp.h>

#include "absl/time/time.h"

namespace covey {

bool CallsInFlight::Begin(grpc::ClientContext* context) {
  MutexLock lock(mutex_);
  if (closed_) return false;
  ++in_flight_;
  contexts_.insert(context);
  return true;
}

void CallsInFlight::Release(grpc::ClientContext* context) {
  MutexLock lock(mutex_);
  contexts_.erase(context);
}

void CallsInFlight::End() {
  MutexLock lock(mutex_);
  --in_flight_;
  ended_.NotifyAll();
}

void CallsInFlight::Close() {
  MutexLock lock(mutex_);
  closed_ = true;
  for (grpc::ClientContext* context : contexts_) context->TryCancel();
  while (in_flight_ > 0) ended_.WaitFor(mutex_, absl::InfiniteDuration());
}

bool CallsInFlight::closed() {
  MutexLock lock(mutex_);
  return closed_;
}

}  // namespace covey
