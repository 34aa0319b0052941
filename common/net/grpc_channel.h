// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "common/net/transport.h"

namespace covey {

class TlsCredentials;

// A loop's connection to the scheduler: turns control requests into typed gRPC calls and their
// outcomes into reply messages. Every request gets exactly one reply of the matching type, which
// carries the status, unless the channel is destroyed first. The exception: a watch that is
// repeated before its reply replaces the earlier one.
//
// WatchViewRequest is a long poll to the loop and one stream on the network: the stream stays open
// from reply to reply, and of several views that arrived in between only the newest is delivered.
//
// Lifetime: the object to which the sink hands messages outlives the channel. With an event loop:
// stop the loop, destroy the channel, destroy the loop.
//
// Of several schedulers one leads: requests go to the one that replied last. When it cannot be
// reached, does not reply in time, or says that it stands by (kStandbyMetadata), the request is
// tried at the next in the list at once, and at each scheduler at most once.
//
// UNAVAILABLE: the scheduler cannot be reached; DEADLINE_EXCEEDED: it did not reply in time. Both
// name the address. Other statuses come from the scheduler itself.
class GrpcChannel : public MessagePort {
 public:
  struct Options {
    std::string scheduler;  // "host:port", or several: "host:port,host:port"
    // Deadline of every request except barriers, which carry their own, and watches, which have
    // none.
    absl::Duration deadline = absl::Seconds(5);
    // Null = without TLS.
    std::shared_ptr<const TlsCredentials> tls;
    // Of whose scheduler a certificate is expected; with `tls`.
    std::string job;
  };
  // Called on gRPC's threads. It must only hand the message over (EventLoop::Deliver).
  using Sink = std::function<void(Message)>;

  GrpcChannel(const Options& options, Sink sink);
  // Cancels calls in progress and waits for their callbacks; afterwards the sink is not called
  // again. Not to be called on gRPC's threads.
  ~GrpcChannel() override;

  // Thread-safe. Connects on the first request.
  void Send(Message message) override;

 private:
  class Implementation;
  const std::unique_ptr<Implementation> implementation_;
};

}  // namespace covey
