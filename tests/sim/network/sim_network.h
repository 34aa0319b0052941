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

// A machine of the simulated world; a process keeps its host over restarts.
using HostId = StrongId<struct HostIdTag, uint32_t>;
// One loop's connection point to the network; lives as long as its process.
using PortId = StrongId<struct PortIdTag, uint64_t>;

// How messages are encoded: not at all, through Protobuf, or through the wire's bytes.
enum class Codec { kNone, kProtobuf, kWire };

struct NetworkConfig {
  absl::Duration delay_min = absl::Microseconds(50);
  // The mean of the random delay added to it.
  absl::Duration delay_more = absl::Microseconds(200);
  // Probability that a message takes up to `tail` longer.
  double tail_chance = 0;
  absl::Duration tail = absl::Milliseconds(500);
  double loss = 0;
  // Probability of flipped bits, which the wire's checks must find.
  double corruption = 0;
  // Probability that a repeatable message is sent twice, as by an early retry.
  double retry = 0;
  // Probability that a message's connection breaks just before it is sent, so that it and the
  // messages in flight overtake each other.
  double reconnect = 0;
  Codec codec = Codec::kNone;
  // Messages in flight in one direction of a connection; further ones are dropped.
  int queue_messages = kTransportQueueMessagesMax;
};

// Faults, beyond NetworkConfig, of what one host sends to another.
struct Impairment {
  // Absent = any.
  std::optional<HostId> from;
  std::optional<HostId> to;
  // Added to each message's delay; of the jitter, a random part.
  absl::Duration delay;
  absl::Duration jitter;
  double loss = 0;
  double retry = 0;
  double corruption = 0;
  // 0 = no limit.
  uint64_t bits_per_second = 0;
};

// The network between loops: keeps the guarantee of common/net/transport.h and nothing more. A
// message arrives at most once per send, or never. Order holds on a connection. A broken connection
// loses some of its messages and delivers the rest later, in parallel with the new connection.
// Corrupted bytes are dropped.
//
// Actor-confined. Deterministic in the simulator's seed. The owner of a port outlives the network.
class SimNetwork {
 public:
  SimNetwork(Simulator& simulator, const NetworkConfig& config);

  // `endpoint` may be empty: such a port listens nowhere. A port that opens a taken endpoint takes
  // it over.
  PortId Open(HostId host, std::string endpoint, std::function<void(Message)> deliver);
  // Breaks the port's connections; nothing more is delivered.
  void Close(PortId port);
  void SetRoute(PortId port, const Address& peer, const std::string& endpoint);
  void DropRoute(PortId port, const Address& peer);
  // False: dropped at once (no such endpoint, or the queue is full). True promises nothing.
  bool Send(PortId port, Message message);

  // Faults in one direction between two hosts; calls nest.
  void Block(HostId from, HostId to) { ++links_[{from, to}].blocked; }
  void Unblock(HostId from, HostId to) { --links_[{from, to}].blocked; }
  // Messages sent while a link is clogged wait, and leave when it is unclogged.
  void Clog(HostId from, HostId to) { ++links_[{from, to}].clogged; }
  void Unclog(HostId from, HostId to);
  // Breaks every connection between the two.
  void Disconnect(HostId a, HostId b);
  // Impairments add up. Returns the id with which this one is removed.
  uint64_t Impair(const Impairment& impairment);
  void Repair(uint64_t name) { impairments_.erase(name); }
  // The result of connecting to an endpoint. The answer of a host is about the process that listens
  // there now.
  enum class Listening { kYes, kNo, kSilence };
  Listening Probe(HostId from, const std::string& endpoint) const;
  bool IsBlocked(HostId from, HostId to) const;
  // A planted bug: one in this many slices of results, and of pushes of plain clients, arrives with
  // a flipped bit and a matching checksum, as if checksums were not checked.
  void BendSlices(uint64_t one_in) { bend_one_in_ = one_in; }
  // Ends loss, corruption, retries and long delays; blocks and clogs end by their own calls.
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
    PortId ends[2];  // the dialing and the listening port
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

  // 0: the message has no destination.
  uint64_t ConnectionFor(PortId port, const Message& message);
  static int EndOf(const Connection& connection, PortId port);
  // The sum of all impairments in this direction.
  Impairment ImpairmentOf(HostId from, HostId to) const;
  void Carry(uint64_t connection, int from_end, Message message);
  void Arrive(uint64_t connection, int from_end, Message message);
  void Break(Connection& connection) { connection.open = false; }
  // Flips a bit of a frame.
  void Damage(Message& message);
  // False: the bytes were damaged, and the damage was found. Damaged frames arrive: the receiver
  // has to notice.
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
  std::map<std::string, HostId> hosts_;  // of every endpoint, past ones included
};

// "push_request node 4.0 -> node 2.1 request 17", for traces.
std::string Describe(const Message& message);

}  // namespace covey::sim
