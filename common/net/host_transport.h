// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "common/net/transport.h"
#include "common/net/zmq_transport.h"

namespace covey {

// The transport of a process's loop: shared memory to peers on the same host, ZeroMQ to all others.
//
// A route to "tcp://..." uses shared memory when a process of the same user and network namespace
// listens at exactly this endpoint (shm/shm_greeting.h), and ZeroMQ otherwise. So a process that is
// reached by way of a forwarder is reached by ZeroMQ. Why a peer on this host cannot be reached by
// shared memory is logged once per route.
//
// When such a peer is gone, its route goes on by ZeroMQ, and takes along what found no room. Shared
// memory is tried again at most once per second, when a message is sent; this is a reconnect, in
// the words of transport.h.
//
// Memory: 256 KiB per peer and direction, and what its messages in flight take, at most 64 MiB.
struct HostOptions {
  ZmqOptions zmq;
  // False: ZeroMQ to all peers.
  bool shared_memory = true;
};

// Errors: as MakeZmqTransport.
absl::StatusOr<std::unique_ptr<Transport>> MakeHostTransport(const HostOptions& options);

}  // namespace covey
