#pragma once

#include <cstdint>
#include <functional>
#include <map>
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
  // So often a request is sent twice, as an early retry would.
  double retry = 0;
  Codec codec = Codec::kNone;
  // Messages under way in one direction of a connection; further ones are dropped.
  int queue_messages = kTransportQueueMessagesMax;
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
  // Planted: one in so many slices of results arrives at a group's member with a flipped bit. A real
  // network would have noticed.
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
  };

  // 0: the message has nowhere to go.
  uint64_t ConnectionFor(PortId port, const Message& message);
  static int EndOf(const Connection& connection, PortId port);
  void Carry(uint64_t connection, int from_end, Message message);
  void Arrive(uint64_t connection, int from_end, Message message);
  void Break(Connection& connection) { connection.open = false; }
  // False: the bytes were damaged, and the damage was found.
  bool Transcode(Message& message);
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
};

// "push_request node 4.0 -> node 2.1 request 17", for traces.
std::string Describe(const Message& message);

}  // namespace covey::sim
