// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/cluster/limits.h"
#include "common/net/transport.h"
#include "common/net/wire.h"
#include "common/security/seal/data_keys.h"

namespace covey {

// Bytes of replies that wait for a peer that does not read, per connection.
inline constexpr size_t kUnreadReplyBytesMax = 256 << 20;

struct ZmqOptions {
  // "tcp://127.0.0.1:0" (0 = any free port) or "ipc:///run/covey/server-0-1". Empty: listens
  // nowhere, and still receives replies to what it sends.
  std::string listen;
  // Messages waiting to be sent, per peer; further ones are dropped.
  int queue_messages = kTransportQueueMessagesMax;
  // The same in bytes, for messages to connections that the peer has made (replies). Frames of up
  // to 32 KiB do not count.
  size_t reply_bytes = kUnreadReplyBytesMax;
  // Messages that have arrived and were not received yet, per peer. Beyond it the peer's socket is
  // not read, so that messages wait at the sender.
  int arrived_messages = 128;
  WireLimits limits;
  // With keys, all messages are sealed, and no others are accepted. Null: no message is sealed, and
  // sealed ones are refused.
  std::shared_ptr<DataKeys> keys;
  // Number of the loop whose transport this is; its messages are sealed as this loop's. With keys,
  // each loop of a process has one transport.
  uint32_t loop = 0;
};

// The data plane's network: one ZeroMQ ROUTER socket that listens and one DEALER socket per route,
// with an I/O thread of their own. Tensor frames are copied neither when sent nor when received;
// sealed ones are encrypted into memory of their own and decrypted in place. Messages are those of
// wire.h; all other bytes are counted and dropped, such as garbage or wrong lengths, and the log
// says why, at most once per second.
//
// Memory: libzmq bounds queues by messages, not bytes. For peers that keep to the protocol, the
// bytes that have arrived are bounded by their credits (Envelope.credit_bytes), the sum of which is
// the server's budget. For other peers, they are bounded by arrived_messages times the size of a
// message, per connection; then TCP's window closes, and the kernel holds what its receive buffer
// takes (6 MiB by default, outside this process's memory). Frames that wait to be sent are
// references; those of replies are bounded by reply_bytes, so that a reader that asks and never
// reads pins no more, and the log says so, at most once per second.
//
// When a connection breaks, its waiting messages stay queued, and go to the process that listens at
// the endpoint next. If that process is another node, it drops them (event_loop.h). A connection
// breaks, and is made again, when the other host has acknowledged nothing for 5 s; so messages flow
// again within seconds after a cut of any length.
//
// A name in an endpoint is looked up without delaying anything else. Messages to a peer whose name
// has no address yet are dropped.
//
// Sealed messages of a process that is not in the view yet are held for a moment
// (seal/sealed_inbox.h).
//
// Limits: a part of a message is at most limits.frame_bytes. libzmq assembles a message before it
// hands it over and does not bound its number of parts, so a hostile peer can make it use memory:
// data ports belong on trusted networks.
//
class ZmqTransport : public Transport {
 public:
  // From now on Wait also returns while `descriptor` is readable, and calls `ready` then. At most
  // once.
  virtual void Watch(int descriptor, std::function<void()> ready) = 0;
  // An eventfd that does not block; another process that writes to it wakes this transport up.
  virtual int wake_up_descriptor() const = 0;
};

// UNAVAILABLE: the address is in use; INVALID_ARGUMENT: the address does not belong to this
// machine. Precondition: no other transport has the same keys and loop.
absl::StatusOr<std::unique_ptr<ZmqTransport>> MakeZmqTransport(const ZmqOptions& options);

}  // namespace covey
