// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "common/net/grpc/calls_in_flight.h"
#include "common/net/grpc/scheduler_stubs.h"
#include "common/net/grpc/unary_calls.h"
#include "common/net/message.h"

namespace covey {

// All control requests of a loop: a watch of the view, and calls with one reply. `Watch` has the
// constructor, Send and Follow of ViewWatch. Thread-safe; the destructor blocks until all calls
// have ended, and no reply is delivered once it has begun.
template <typename Watch>
class ControlCalls {
 public:
  // `schedulers`, `credentials`: as those of SchedulerStubs; `deadline`, `deliver`: as UnaryCalls'.
  ControlCalls(const std::string& schedulers,
               const std::shared_ptr<grpc::ChannelCredentials>& credentials,
               absl::Duration deadline, std::function<void(Message)> deliver)
      : deliver_(std::move(deliver)),
        stubs_(schedulers, credentials, [this] { watch_.Follow(); }),
        unary_calls_(stubs_, calls_, deadline,
                     [this](Message reply) { Deliver(std::move(reply)); }),
        watch_(stubs_, calls_, [this](Message reply) { Deliver(std::move(reply)); }) {}
  ~ControlCalls() { calls_.Close(); }

  // Does not block.
  void Send(Message message) {
    if (message.envelope.has_watch_view_request()) {
      watch_.Send(std::move(message));
    } else {
      unary_calls_.Send(std::move(message));
    }
  }

 private:
  void Deliver(Message reply) {
    if (!calls_.closed()) deliver_(std::move(reply));
  }

  const std::function<void(Message)> deliver_;
  SchedulerStubs stubs_;
  CallsInFlight calls_;
  UnaryCalls unary_calls_;
  Watch watch_;
};

}  // namespace covey
