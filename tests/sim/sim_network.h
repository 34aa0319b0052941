// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/random.h"
#include "common/base/strong_id.h"
#include "common/cluster/ids.h"
#include "common/cluster/limits.h"
#include "common/net/message.h"
#include "common/simulation/simulator.h"

namespace covey::sim {

// A machine of the simulated world; processes keep theirs over restarts.
using HostId = StrongId<struct HostIdTag, uint32_t>;
// One loop's end of the network, while its process lives.
using PortId = StrongId<struct PortIdTag, uint64_t>;

// How messages go through the network: as they are, through Protobuf, or through the wire's bytes.
enum class Codec { kNone, kProtobuf, kWire };

struct NetworkConfig {
  absl::Duration delay_min = absl::Microseconds(50);
  // Mean of what is added to it.
  absl::Duration delay_more = absl::Microseconds(200);
  // So often a message takes up to `tail` longer.
  double tail_chance = 0;
  absl::Duration tail = absl::Milliseconds(500);
  double loss = 0;
  // Flipped bits; what the wire's checks are to find.
  double corruption = 0;
  // So often what may be repeated is sent twice, as an early retry would.
  double retry = 0;
  // So often the connection that a message would take breaks just before, so that what is under way
  // on it and this message overtake each other.
  double reconnect = 0;
  Codec codec = Codec::kNone;
  // Messages under way in one direction of a connection; further ones are dropped.
  int queue_messages = kTransportQueueMessagesMax;
};

// What is wrong, beyond NetworkConfig, with what goes from one host to another.
struct Impairment {
  // Nothing = any.
  std::optional<HostId> from;
  std::optional<HostId> to;
  // Added to each message's way; of the jitter, a random part.
  absl::Duration delay;
  absl::Duration jitter;
  double loss = 0;
  double retry = 0;
  double corruption = 0;
  // 0 = no limit.
  uint64_t bits_per_second = 0;
};

// The network between loops: honours the guarantee of common/net/transport.h and nothing more. A
// message arrives at most once per send, or never; order holds on a connection; a broken connection
// loses some of what it carried and delivers the rest later, next to what the new connection
// carries; corrupted bytes are dropped.
//
// Actor-confined. Deterministic in the simulator's seed. Whoever opened a port outlives it.
class SimNetwork {
 public:
  SimNetwork(Simulator& simulator, const NetworkConfig& config);

  // `endpoint` may be empty: such a port listens nowhere. A port that listens on a taken endpoint
  // takes it over.
  PortId Open(HostId host, std::string endpoint, std::function<void(Message)> deliver);
  // Breaks its connections; nothing is delivered any more.
  void Close(PortId port);
  void SetRoute(PortId port, const Address& peer, const std::string& endpoint);
  void DropRoute(PortId port, const Address& peer);
  // False: dropped at once (nowhere to go, or the queue is full). True promises nothing.
  bool Send(PortId port, Message message);

  // Faults on what goes one way between two hosts; calls nest.
  void Block(HostId from, HostId to) { ++links_[{from, to}].blocked; }
  void Unblock(HostId from, HostId to) { --links_[{from, to}].blocked; }
  // What is sent meanwhile waits, and leaves when the clog goes.
  void Clog(HostId from, HostId to) { ++links_[{from, to}].clogged; }
  void Unclog(HostId from, HostId to);
  // Breaks every connection between the two.
  void Disconnect(HostId a, HostId b);
  // Impairments add up. Returns the name under which to take this one away.
  uint64_t Impair(const Impairment& impairment);
  void Repair(uint64_t name) { impairments_.erase(name); }
  // What who tries to connect to an endpoint meets. The answer of a host is about whoever listens
  // there now.
  enum class Listening { kYes, kNo, kSilence };
  Listening Probe(HostId from, const std::string& endpoint) const;
  bool IsBlocked(HostId from, HostId to) const;
  // Planted: one in so many slices of results, and of pushes of plain clients, arrives with a
  // flipped bit that fits its checksum, as if nobody looked at checksums.
  void BendSlices(uint64_t one_in) { bend_one_in_ = one_in; }
  // No loss, corruption, retries or long delays from now on; blocks and clogs end by their own
  // calls.
  void Heal();

 private:
  struct Port {
    HostId host;
    std::string endpoint;
    std::function<void(Message)> deliver;
    std::map<Address, std::string> routes;
    std::map<std::string, uint64_t> dialed;  // endpoint -> connection
  };
  struct Connection {
    PortId ends[2];  // who dialed, who listened
    absl::Time last_arrival[2] = {absl::InfinitePast(), absl::InfinitePast()};
    int under_way[2] = {0, 0};
    bool open = true;
  };
  struct Link {
    int blocked = 0;
    int clogged = 0;
    std::vector<std::pair<PortId, Message>> held;
    absl::Time busy_until = absl::InfinitePast();  // under a limited rate
  };

  // 0: the message has nowhere to go.
  uint64_t ConnectionFor(PortId port, const Message& message);
  static int EndOf(const Connection& connection, PortId port);
  // What is wrong with this way, all in all.
  Impairment ImpairmentOf(HostId from, HostId to) const;
  void Carry(uint64_t connection, int from_end, Message message);
  void Arrive(uint64_t connection, int from_end, Message message);
  void Break(Connection& connection) { connection.open = false; }
  // Flips a bit of a frame.
  void Damage(Message& message);
  // False: the bytes were damaged, and the damage was found. Damaged frames arrive: whoever uses
  // them has to notice.
  bool Transcode(Message& message, double corruption);
  absl::Duration Delay();
  void Bend(Message& message);
  void Lose(const Message& message, absl::string_view why);

  Simulator& simulator_;
  NetworkConfig config_;
  Random random_;
  uint64_t bend_one_in_ = 0;  // 0 = none
  uint64_t next_port_ = 1;
  uint64_t next_connection_ = 1;
  std::map<PortId, Port> ports_;
  std::map<std::string, PortId> listeners_;
  std::map<uint64_t, Connection> connections_;
  std::map<std::pair<HostId, HostId>, Link> links_;
  std::map<uint64_t, Impairment> impairments_;
  uint64_t next_impairment_ = 1;
  std::map<std::string, HostId> hosts_;  // of every endpoint that ever was
};

// "push_request node 4.0 -> node 2.1 request 17", for traces.
std::string Describe(const Message& message);

}  // namespace covey::sim
