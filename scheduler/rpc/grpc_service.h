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

namespace covey::scheduler {

// The control plane's front door: turns typed gRPC calls into messages for the scheduler's actor
// and its replies into the calls' answers; nothing else. The health service and reflection are on;
// health says NOT_SERVING while this scheduler does not lead, so that whoever balances by it finds
// the one that does.
//
//   on gRPC's threads   call ─▶ message ─▶ posted to the loop
//   on the loop         actor's reply ─▶ Send ─▶ answer of the call
//
// Each call under way has a number, which is the message's `connection`. A WatchView stream is a
// series of WatchViewRequest messages, each sent when the answer to the one before has been
// written.
//
// Threads: gRPC's own threads only convert and post; everything that is shared belongs to the
// loop's thread, so there is no lock. Send belongs to the loop. The loop outlives the service, and
// runs from its first call until Shutdown has returned.
//
// A watch that ends although we do not end it is told to the actor (ConnectionLost): its node may
// be gone.
//
// Limits: a request of more than 1 MiB is refused with RESOURCE_EXHAUSTED, and so is a call beyond
// those that Admission lets in; a reply has at most kControlEnvelopeBytesMax. gRPC's own memory is
// bounded softly (a quota): callers that obey HTTP/2's limits cannot exceed it, others cost about
// 16 KiB per call they send. Bytes that are no gRPC are dropped by gRPC itself, with the
// connection.
class GrpcService : public MessagePort {
 public:
  struct Options {
    std::string host;
    // 0 = any free one.
    uint32_t port = 0;
    // Whether this scheduler leads; asked on the loop's thread. One that does not marks its
    // refusals, so that callers try another (GrpcChannel). Null = always; else it is not healthy
    // before SetServing.
    std::function<bool()> leads;
  };

  // Listens and begins to take calls. UNAVAILABLE: the port is in use, or the host is not of this
  // machine.
  static absl::StatusOr<std::unique_ptr<GrpcService>> Start(const Options& options, Actor& actor,
                                                            EventLoop& loop);

  ~GrpcService() override = default;

  virtual uint32_t port() const = 0;
  // From now on the health service says SERVING. Any thread.
  virtual void SetServing() = 0;
  // Calls whose request was garbage, or that named no method of ours. On the loop's thread.
  virtual uint64_t malformed() const = 0;
  // Ends all calls with CANCELLED and waits until gRPC's threads are done with them. Idempotent.
  virtual void Shutdown() = 0;
};

}  // namespace covey::scheduler
