// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/net/descriptor.h"
#include "common/net/message.h"
#include "common/net/shm/shm_link.h"
#include "common/net/shm/shm_region.h"
#include "common/net/transport.h"
#include "common/net/wire.h"

namespace covey {

// The peers on this host with which a transport exchanges messages through shared memory.
//
//   connection   kGreeting ── the peer's greeting arrives ──▶ kOpen ── the peer ends, or breaks
//                    │                                          │       the rules ──▶ gone
//                    └── the peer ends, or it is no peer ──▶ gone ◀─────────┘
//
// A message that finds no room waits here, and is sent by a later call of Receive; so do all of
// them while the connection is in kGreeting. What the peer has sent before its end is received.
//
// Actor-confined; frames that were received may be dropped on any thread.
class ShmPeers {
 public:
  struct Options {
    WireLimits limits;
    // Messages that wait, per peer; further ones are dropped.
    int queue_messages = 0;
    // The eventfd that ends the loop's sleep. It outlives this object.
    int wake_up = -1;
    // A connection that Connect made is gone. It may not call this object.
    std::function<void(uint64_t connection, const absl::Status& why, std::deque<Message> waiting)>
        gone;
  };

  explicit ShmPeers(Options options);

  // Whether `connection` is one of these; other transports have smaller numbers.
  static bool IsConnection(uint64_t connection) { return connection >> 63 != 0; }
  // Readable while HandleSockets has something to do.
  int descriptor() const { return epoll_.number(); }

  // Peers that are told `endpoint` find this process from now on. Errors: as ListenForShm.
  absl::Status Listen(const std::string& endpoint);
  // Returns the connection to the process that listens at `endpoint`. Errors: as ConnectShm and
  // ShmRegion::Create.
  absl::StatusOr<uint64_t> Connect(const std::string& endpoint);
  // Drops what waits.
  void Close(uint64_t connection);

  void Send(uint64_t connection, Message message);
  // As Transport.
  bool Receive(int limit, absl::FunctionRef<void(Message)> sink);

  // Takes in new peers and greetings, and notices peers that have ended.
  void HandleSockets();

  // Between the two, peers wake the loop. False: there is something to receive already.
  bool FallAsleep();
  void Awake();

  const TransportCounters& counters() const { return counters_; }

 private:
  enum class State { kGreeting, kOpen };
  struct Connection {
    State state = State::kGreeting;
    Descriptor socket;
    bool is_ours = false;             // Connect made it
    std::optional<ShmRegion> region;  // until the link has it
    std::unique_ptr<ShmLink> link;
    std::deque<Message> waiting;
    // The peer has ended, and what it had sent is being received.
    std::optional<absl::Status> ended;
  };

  uint64_t Add(Descriptor socket, ShmRegion region, bool is_ours);
  void Accept();
  void HandleSocket(uint64_t id);
  // Takes in the peer's greeting, if it has arrived.
  absl::Status Open(Connection& connection);
  // Sends what waits, as far as there is room. DATA_LOSS: as ShmLink.
  absl::Status SendWaiting(Connection& connection);
  // Takes one record in; false when there is none.
  bool ReceiveOne(uint64_t id, absl::FunctionRef<void(Message)> sink);
  void End(uint64_t id, const absl::Status& why);

  const Options options_;
  const Descriptor epoll_;
  Descriptor listener_;
  std::map<uint64_t, Connection> connections_;
  uint64_t newest_ = uint64_t{1} << 63;
  uint64_t turn_ = 0;  // the connection that was received from last
  TransportCounters counters_;
};

}  // namespace covey
