// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/net/transport.h"
#include "common/runtime/actor.h"
#include "common/runtime/event_loop.h"

namespace covey {

class TlsCredentials;

namespace scheduler {

// The control plane's gRPC service: converts typed calls into messages for the scheduler's actor,
// and the actor's replies into replies of the calls; nothing else. With certificates, each call's
// message says whose it is (Message::caller), and the actor decides what the caller may do. The
// health service reports NOT_SERVING while this scheduler does not lead, so
// that load balancers find the leader.
//
//   on gRPC's threads   call ─▶ message ─▶ posted to the loop
//   on the loop         actor's reply ─▶ Send ─▶ answer of the call
//
// Each call in flight has a number, which is the message's `connection`. A WatchView stream is a
// series of WatchViewRequest messages, each sent when the reply to the one before has been written.
//
// Threads: gRPC's own threads only convert and post; shared state belongs to the loop's thread, so
// there is no lock. Send belongs to the loop. The loop outlives the service, and runs from its
// first call until Shutdown has returned.
//
// When a watch ends although we did not end it, the actor is told (ConnectionLost), because the
// node may be gone.
//
// Limits: a request of more than 1 MiB is refused with RESOURCE_EXHAUSTED, and so is a call that
// Admission does not admit; a reply has at most kControlEnvelopeBytesMax. gRPC's own memory is
// bounded softly (a quota): callers that obey HTTP/2's limits cannot exceed it, other callers cost
// about 16 KiB per call. Bytes that are not gRPC are dropped by gRPC itself, together with the
// connection.
class GrpcService : public MessagePort {
 public:
  struct Options {
    std::string host;
    // 0 = any free port.
    uint32_t port = 0;
    // Whether this scheduler leads; called on the loop's thread. When it does not lead, its
    // refusals are marked, so that callers try another scheduler (GrpcChannel). Null = it always
    // leads; otherwise the health service reports NOT_SERVING before SetServing.
    std::function<bool()> leads;
    // Callers must show certificates. Null = without TLS.
    std::shared_ptr<const TlsCredentials> tls;
    // gRPC's reflection service, which shows the service's definition to tools.
    bool has_reflection = false;
  };

  // Listens and begins to accept calls. UNAVAILABLE: the port is in use, or the host is not an
  // address of this machine. FAILED_PRECONDITION: the list of revoked certificates is damaged.
  static absl::StatusOr<std::unique_ptr<GrpcService>> Start(const Options& options, Actor& actor,
                                                            EventLoop& loop);

  ~GrpcService() override = default;

  virtual uint32_t port() const = 0;
  // From now on the health service reports SERVING. Any thread.
  virtual void SetServing() = 0;
  // Number of calls with a malformed request or an unknown method. On the loop's thread.
  virtual uint64_t malformed() const = 0;
  // Number of calls that were refused for their caller's certificate. Any thread.
  virtual uint64_t callers_refused() const = 0;
  // Ends all calls with CANCELLED and waits until gRPC's threads are done with them. Idempotent.
  virtual void Shutdown() = 0;
};

}  // namespace scheduler
}  // namespace covey
