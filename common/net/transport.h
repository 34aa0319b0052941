// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/net/message.h"
#include "common/net/seal/refusal.h"

namespace covey {

// What a transport has refused or lost since its start. Read by its loop, reported in heartbeats
// and status.
struct TransportCounters {
  uint64_t received = 0;
  uint64_t sent = 0;
  // Bytes from outside that were no valid message for this loop.
  RefusalCounts refused;
  // Messages dropped because the peer's queue was full or the peer is unknown.
  uint64_t dropped = 0;
};

// Carries messages between loops. One loop owns a transport and is the only caller, except WakeUp.
//
// The guarantee, and no caller may assume more: a message arrives at most once per Send, or never;
// order holds per sender and receiver until a reconnect; corrupted bytes are dropped, not
// delivered; Send never blocks. Frames of a received message are aligned to 8 bytes at least. Every
// implementation passes the suite in transport_conformance.h.
class Transport {
 public:
  virtual ~Transport() = default;

  // The address of this transport for others: "tcp://127.0.0.1:40001". Empty when it does not
  // listen.
  virtual std::string endpoint() const = 0;

  // Messages to `peer` go to `endpoint` from now on. A repeated call with the same endpoint has no
  // effect; another endpoint replaces the connection. Messages with a connection of their own
  // (replies) do not need a route.
  virtual void SetRoute(const Address& peer, const std::string& endpoint) = 0;
  // Closes the connection and drops its waiting messages; frames are released soon after.
  virtual void DropRoute(const Address& peer) = 0;

  // What cannot be sent at once waits, and is sent by later calls of Receive and Wait.
  virtual void Send(Message message) = 0;

  // Gives at most `limit` arrived messages to `sink`, oldest first per sender; true when there may
  // be more. Messages that arrive later are seen after the next Wait. `sink` may send and change
  // routes.
  virtual bool Receive(int limit, absl::FunctionRef<void(Message)> sink) = 0;

  // Blocks until a message may have arrived, WakeUp was called, or `timeout` has passed.
  virtual void Wait(absl::Duration timeout) = 0;
  // Makes the current or the next Wait return. Thread-safe.
  virtual void WakeUp() = 0;

  virtual const TransportCounters& counters() const = 0;
};

// Accepts messages that bypass a loop's own transport: the gRPC channel to the scheduler, the disk,
// another loop of the same process. Called on the loop's thread; must not block.
class MessagePort {
 public:
  virtual ~MessagePort() = default;
  virtual void Send(Message message) = 0;
};

}  // namespace covey
