// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "common/net/transport.h"

namespace covey {

// A loop's way to the scheduler: turns control requests into typed gRPC calls and their outcomes
// into reply messages. Every request gets exactly one reply of the matching type, its status
// included, unless the channel is destroyed first; only a watch that is repeated before its answer
// replaces the earlier one.
//
// WatchViewRequest is a long poll to the loop and one stream on the network: the stream stays open
// from answer to answer, and of several views that arrived in between only the newest is given.
//
// Lifetime: whatever the sink hands over to outlives the channel. With an event loop: stop the
// loop, destroy the channel, destroy the loop.
//
// Of several schedulers one leads: requests go to the one that answered last. One that cannot be
// reached, does not answer in time, or says that it stands by (kStandbyMetadata) is left for the
// next in the list, and the request tried there at once, each scheduler at most once per request.
//
// UNAVAILABLE: the scheduler cannot be reached; DEADLINE_EXCEEDED: it did not answer in time. Both
// say at which address. Other statuses are the scheduler's own.
class GrpcChannel : public MessagePort {
 public:
  struct Options {
    std::string scheduler;  // "host:port", or several: "host:port,host:port"
    // For every request but barriers, which carry their own, and watches, which have none.
    absl::Duration deadline = absl::Seconds(5);
  };
  // Called on gRPC's threads; must only hand over (EventLoop::Deliver).
  using Sink = std::function<void(Message)>;

  GrpcChannel(const Options& options, Sink sink);
  // Cancels what is under way and waits for its callbacks; afterwards the sink is not called again.
  // Not on gRPC's threads.
  ~GrpcChannel() override;

  // Thread-safe. Connects on the first request.
  void Send(Message message) override;

 private:
  class Implementation;
  const std::unique_ptr<Implementation> implementation_;
};

}  // namespace covey
