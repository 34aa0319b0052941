// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/net/grpc/calls_in_flight.h"
#include "common/net/grpc/scheduler_stubs.h"
#include "common/net/message.h"

namespace covey {

// Carries each control request that has one reply (COVEY_UNARY_CONTROL_METHODS) as a typed gRPC
// call: to the current scheduler, and when that one cannot be reached or does not lead, to the
// others, at most once each. Thread-safe. `stubs` and `calls` outlive it; it is destroyed after
// `calls` is closed.
class UnaryCalls {
 public:
  // `deadline` is that of every request except barriers, which carry their own. `deliver` receives
  // exactly one reply to each request, on gRPC's threads, unless `calls` is closed first. A request
  // that is repeated while it is in flight, with the same id, has one reply with it: when many
  // nodes wait for a scheduler, repeats would only make the wait longer.
  UnaryCalls(SchedulerStubs& stubs, CallsInFlight& calls, absl::Duration deadline,
             std::function<void(Message)> deliver);

  // Does not block. Any other message is logged and dropped.
  void Send(Message request);

 private:
  template <typename Request, typename Reply>
  class Call;
  // Of a request: the case of its body, and its id.
  using Key = std::pair<int, uint64_t>;

  static Key KeyOf(const Message& request) {
    return {request.envelope.body_case(), request.envelope.header().request_id()};
  }
  // The request is no longer in flight.
  void Forget(const Message& request);

  SchedulerStubs& stubs_;
  CallsInFlight& calls_;
  const absl::Duration deadline_;
  const std::function<void(Message)> deliver_;

  Mutex mutex_;
  absl::flat_hash_set<Key> in_flight_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace covey
