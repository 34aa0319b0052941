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
#include "common/base/descriptor.h"
#include "common/net/message.h"
#include "common/net/shm/shm_link.h"
#include "common/net/shm/shm_region.h"
#include "common/net/transport.h"
#include "common/net/wire.h"

namespace covey {

// The peers on this host with which a transport exchanges messages through shared memory.
//
//   connection   kGreeting ── the peer's greeting arrives ──▶ kOpen ── the peer ends ──▶ kEnding
//                    │                                          │                           │
//                    │ the peer ends,                           │ it breaks     all that it │
//                    │ or it is no peer                         │ the rules        had sent │
//                    └─────────────────▶ gone ◀─────────────────┴──────── was received ─────┘
//
// A message that finds no room waits, and is sent by a later call of Receive. All messages wait
// while the connection is in kGreeting.
//
// Actor-confined; frames that were received may be dropped on any thread.
class ShmPeers {
 public:
  struct Options {
    WireLimits limits;
    // Messages that wait, per peer; further ones are dropped.
    int queue_messages = 0;
    // The same in bytes of frames, for connections that the peer has made.
    size_t reply_bytes = 0;
    // The eventfd that ends the loop's sleep. It outlives this object.
    int wake_up = -1;
    // A connection that Connect made is gone, with the messages that were waiting. It may not call
    // this object. `why`: UNAVAILABLE: the peer has ended; FAILED_PRECONDITION: it has refused;
    // others: it has broken the rules.
    std::function<void(uint64_t connection, const absl::Status& why, std::deque<Message> waiting)>
        gone;
  };

  explicit ShmPeers(Options options);
  ~ShmPeers();

  // Whether `connection` is one of these; other transports have smaller numbers.
  static bool IsConnection(uint64_t connection) { return connection >> 63 != 0; }
  // Readable while HandleSockets has something to do.
  int descriptor() const { return epoll_.number(); }

  // Peers that are told `endpoint` find this process from now on. Errors: as ListenForShm.
  absl::Status Listen(const std::string& endpoint);
  // Returns the connection to the process that listens at `endpoint`. RESOURCE_EXHAUSTED: there are
  // kShmConnectionsMax. Other errors: as ConnectShm and ShmRegion::Create.
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
  enum class State { kGreeting, kOpen, kEnding };
  struct Connection {
    State state = State::kGreeting;
    Descriptor socket;
    bool is_ours = false;             // Connect made it
    std::optional<ShmRegion> region;  // until the link has it
    std::unique_ptr<ShmLink> link;    // from kOpen on
    std::deque<Message> waiting;
    size_t waiting_bytes = 0;  // of their frames
  };

  // UNAVAILABLE: the system's error.
  absl::StatusOr<uint64_t> Add(Descriptor socket, ShmRegion region, bool is_ours);
  bool MayWait(const Connection& connection, const Message& message) const;
  void Accept();
  void HandleSocket(uint64_t id);
  // Takes in the peer's greeting, if it has arrived.
  absl::Status Open(Connection& connection);
  // Sends what waits, as far as there is room. DATA_LOSS: as ShmLink.
  absl::Status SendWaiting(Connection& connection);
  // Takes one record in, or ends the connection; false when there was nothing to do.
  bool ReceiveOne(uint64_t id, absl::FunctionRef<void(Message)> sink);
  void End(uint64_t id, absl::Status why);
  // Also where a child process has inherited the socket, the peer sees its end.
  void CloseSocket(Descriptor& socket);

  const Options options_;
  const Descriptor epoll_;
  Descriptor listener_;
  std::map<uint64_t, Connection> connections_;
  uint64_t newest_ = uint64_t{1} << 63;
  uint64_t turn_ = 0;  // the connection that was received from last
  TransportCounters counters_;
};

}  // namespace covey
