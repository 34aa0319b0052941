// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
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
#include "tests/sim/network/host_id.h"
#include "tests/sim/network/impairments.h"
#include "tests/sim/network/lent_frames.h"
#include "tests/sim/network/message_codec.h"

namespace covey::sim {

// One loop's connection point to the network; lives as long as its process.
using PortId = StrongId<struct PortIdTag, uint64_t>;

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
  // Probability that a hostile process sends a forgery of a message (forgery.h).
  double forgery = 0;
  Codec codec = Codec::kNone;
  // Messages in flight in one direction of a connection; further ones are dropped.
  int queue_messages = kTransportQueueMessagesMax;
};

// The network between loops: keeps the guarantee of common/net/transport.h and nothing more. A
// message arrives at most once per send, or never. Order holds on a connection. A broken connection
// loses some of its messages and delivers the rest later, in parallel with the new connection.
// Corrupted bytes are dropped. Frames are lent (lent_frames.h).
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
  const LentFrames& lent_frames() const { return lent_frames_; }

  // Faults in one direction between two hosts; calls nest.
  void Block(HostId from, HostId to) { ++links_[{from, to}].blocked; }
  void Unblock(HostId from, HostId to) { --links_[{from, to}].blocked; }
  // Messages sent while a link is clogged wait, and leave when it is unclogged.
  void Clog(HostId from, HostId to) { ++links_[{from, to}].clogged; }
  void Unclog(HostId from, HostId to);
  // Breaks every connection between the two.
  void Disconnect(HostId a, HostId b);
  // Impairments add up. Returns the id with which this one is removed.
  uint64_t Impair(const Impairment& impairment) { return impairments_.Add(impairment); }
  void Repair(uint64_t impairment) { impairments_.Remove(impairment); }
  // The result of connecting to an endpoint. The answer of a host is about the process that listens
  // there now.
  enum class Listening { kYes, kNo, kSilence };
  Listening Probe(HostId from, const std::string& endpoint) const;
  bool IsBlocked(HostId from, HostId to) const;
  // Plants the bug of bent_slice.h: one in this many of the messages that it can concern is bent.
  void BendSlices(uint64_t one_in) { bend_one_in_ = one_in; }
  // Of a hostile process: the node that it is, or claims to be, and its incarnation.
  struct HostileName {
    NodeId node;
    Incarnation incarnation;
  };
  // The processes of this host may forge messages from now on (forgery.h), over connections of
  // their own, under the name `self()`, or under the number of another node; not while its node is
  // 0.
  void MakeHostile(HostId host, std::function<HostileName()> self) {
    hostile_[host] = std::move(self);
  }
  // Whether messages on this connection are forged, or answer forged ones.
  bool IsOfForger(uint64_t connection) const;
  // Ends loss, corruption, retries, forgery and long delays; blocks and clogs end by their own
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
    PortId ends[2];  // the dialing and the listening port
    absl::Time last_arrival[2] = {absl::InfinitePast(), absl::InfinitePast()};
    int under_way[2] = {0, 0};
    bool open = true;
    bool is_of_forger = false;  // the dialing end forges
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
  // Replaces the frames of `message`, which no other message shares, by lent ones for those that
  // were `sent`.
  void Lend(std::span<const Buffer> sent, Message& message);
  // Lets a hostile process send the receiver `to` of `message` a forgery of it.
  void MaybeForge(PortId to, const Message& message);
  // The open connection from a forging port to one that listens; 0 = there can be none.
  uint64_t ForgersConnection(PortId forger, PortId to);
  // An answer to a forged request has come; nothing honest waits for it.
  void NoteAnswer(const Message& message);
  absl::Duration Delay();
  void Lose(const Message& message, absl::string_view why);

  Simulator& simulator_;
  NetworkConfig config_;
  Random random_;
  Random of_forgery_;  // another stream, so that histories without forgery do not depend on it
  std::map<HostId, std::function<HostileName()>> hostile_;
  uint64_t forged_ = 0;
  MessageCodec codec_;
  uint64_t bend_one_in_ = 0;  // 0 = none
  uint64_t next_port_ = 1;
  uint64_t next_connection_ = 1;
  std::map<PortId, Port> ports_;
  std::map<std::string, PortId> listeners_;
  std::map<uint64_t, Connection> connections_;
  std::map<std::pair<HostId, HostId>, Link> links_;
  Impairments impairments_;
  LentFrames lent_frames_;
  std::map<std::string, HostId> hosts_;  // of every endpoint, past ones included
};

}  // namespace covey::sim
