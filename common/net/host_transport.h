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
// memory is tried again when a message is sent, at most once per second, and once per minute after
// a refusal. So a route may change over while messages are on their way by ZeroMQ, and later ones
// may overtake these: in the words of transport.h, this is a reconnect.
//
// Memory: 256 KiB per peer and direction, and the most that its messages in flight have ever taken,
// at most 64 MiB.
struct HostOptions {
  ZmqOptions zmq;
  // False: ZeroMQ to all peers.
  bool shared_memory = true;
};

// Errors: as MakeZmqTransport.
absl::StatusOr<std::unique_ptr<Transport>> MakeHostTransport(const HostOptions& options);

}  // namespace covey
