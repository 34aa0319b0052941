// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/network/sim_network.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/net/wire.h"
#include "tests/sim/network/bent_slice.h"
#include "tests/sim/network/forgery.h"
#include "tests/sim/network/message_description.h"

namespace covey::sim {
namespace {

// Share of a broken connection's messages that still arrive.
constexpr double kLateChance = 0.5;

// Whether its sender retries when no answer comes.
bool MayBeRepeated(const proto::Envelope& envelope) {
  return envelope.has_replicate_reply() || envelope.has_replica_piece() ||
         absl::EndsWith(BodyName(envelope), "_request");
}

size_t BytesOf(const Message& message) {
  size_t bytes = message.envelope.ByteSizeLong();
  for (const Buffer& frame : message.frames) bytes += frame.size();
  return bytes;
}

void CopyFrames(Message& message) {
  for (Buffer& frame : message.frames) frame = Buffer::CopyOf(frame.bytes());
}

}  // namespace

SimNetwork::SimNetwork(Simulator& simulator, const NetworkConfig& config)
    : simulator_(simulator),
      config_(config),
      random_(simulator.Draws(Simulator::Stream::kNetwork)),
      of_forgery_(simulator.Draws(Simulator::Stream::kNetwork, 1)),
      codec_(config.codec, random_, simulator) {}

PortId SimNetwork::Open(HostId host, std::string endpoint, std::function<void(Message)> deliver) {
  const PortId port(next_port_++);
  if (!endpoint.empty()) {
    listeners_[endpoint] = port;
    hosts_[endpoint] = host;
  }
  ports_[port] = {.host = host, .endpoint = std::move(endpoint), .deliver = std::move(deliver)};
  return port;
}

void SimNetwork::Close(PortId port) {
  const auto found = ports_.find(port);
  if (found == ports_.end()) return;
  const auto listener = listeners_.find(found->second.endpoint);
  if (listener != listeners_.end() && listener->second == port) listeners_.erase(listener);
  for (auto& [id, connection] : connections_) {
    if (connection.ends[0] == port || connection.ends[1] == port) Break(connection);
  }
  ports_.erase(found);
}

void SimNetwork::SetRoute(PortId port, const Address& peer, const std::string& endpoint) {
  Port& from = ports_.at(port);
  if (from.routes[peer] == endpoint) return;
  DropRoute(port, peer);
  from.routes[peer] = endpoint;
}

void SimNetwork::DropRoute(PortId port, const Address& peer) {
  Port& from = ports_.at(port);
  const auto route = from.routes.find(peer);
  if (route == from.routes.end()) return;
  const auto dialed = from.dialed.find(route->second);
  if (dialed != from.dialed.end()) {
    Break(connections_.at(dialed->second));
    from.dialed.erase(dialed);
  }
  from.routes.erase(route);
}

uint64_t SimNetwork::ConnectionFor(PortId port, const Message& message) {
  if (message.connection != 0) {
    const auto found = connections_.find(message.connection);
    return found != connections_.end() && found->second.open ? message.connection : 0;
  }
  Port& from = ports_.at(port);
  const auto route = from.routes.find(message.to());
  if (route == from.routes.end()) return 0;
  const auto listener = listeners_.find(route->second);
  if (listener == listeners_.end()) return 0;
  uint64_t& dialed = from.dialed[route->second];
  if (dialed == 0 || !connections_.at(dialed).open) {
    dialed = next_connection_++;
    connections_[dialed].ends[0] = port;
    connections_[dialed].ends[1] = listener->second;
  }
  return dialed;
}

Impairment SimNetwork::ImpairmentOf(HostId from, HostId to) const {
  return impairments_.Sum(
      {.loss = config_.loss, .retry = config_.retry, .corruption = config_.corruption}, from, to);
}

bool SimNetwork::IsBlocked(HostId from, HostId to) const {
  const auto link = links_.find({from, to});
  return link != links_.end() && link->second.blocked > 0;
}

SimNetwork::Listening SimNetwork::Probe(HostId from, const std::string& endpoint) const {
  const auto host = hosts_.find(endpoint);
  if (host == hosts_.end() || IsBlocked(from, host->second) || IsBlocked(host->second, from)) {
    return Listening::kSilence;
  }
  return listeners_.count(endpoint) > 0 ? Listening::kYes : Listening::kNo;
}

void SimNetwork::Lose(const Message& message, absl::string_view why) {
  simulator_.Count(absl::StrCat("network_", why));
  if (simulator_.tracing())
    simulator_.Trace(absl::StrCat("  drop (", why, ") ", Describe(message)));
}

bool SimNetwork::Send(PortId port, Message message) {
  if (ports_.find(port) == ports_.end()) return false;
  uint64_t id = ConnectionFor(port, message);
  if (id != 0 && config_.reconnect > 0 && random_.Chance(config_.reconnect)) {
    simulator_.Count("network_reconnect");
    Break(connections_.at(id));
    id = ConnectionFor(port, message);
  }
  if (id == 0) {
    Lose(message, "nowhere_to_go");
    return false;
  }
  const Connection& connection = connections_.at(id);
  const int from_end = EndOf(connection, port);
  const HostId from = ports_.at(port).host;
  const HostId to = ports_.at(connection.ends[1 - from_end]).host;
  const Impairment impairment = ImpairmentOf(from, to);
  Link& link = links_[{from, to}];
  if (connection.under_way[from_end] + static_cast<int>(link.held.size()) >=
      config_.queue_messages) {
    Lose(message, "queue_full");
    return false;
  }
  if (config_.forgery > 0) MaybeForge(connection.ends[1 - from_end], message);
  const auto sent = message.frames;
  CopyFrames(message);
  if (bend_one_in_ > 0 && IsBendable(message) && random_.Below(bend_one_in_) == 0) Bend(message);
  if (link.blocked > 0) {
    Lose(message, "partitioned");
  } else if (random_.Chance(impairment.loss)) {
    Lose(message, "lost");
  } else if (!codec_.Pass(message, impairment.corruption)) {
    Lose(message, "corrupted");
  } else if (link.clogged > 0) {
    simulator_.Count("network_clogged");
    Lend(sent, message);
    link.held.emplace_back(port, std::move(message));
  } else {
    if (random_.Chance(impairment.retry) && MayBeRepeated(message.envelope)) {
      simulator_.Count("network_retried");
      Message repeated = message;
      CopyFrames(repeated);
      Lend(sent, repeated);
      Carry(id, from_end, std::move(repeated));
    }
    Lend(sent, message);
    Carry(id, from_end, std::move(message));
  }
  return true;
}

void SimNetwork::Lend(std::span<const Buffer> sent, Message& message) {
  for (size_t i = 0; i < message.frames.size(); ++i) {
    message.frames[i] = lent_frames_.Lend(sent[i], message.frames[i]);
  }
}

bool SimNetwork::IsOfForger(uint64_t connection) const {
  const auto found = connections_.find(connection);
  return found != connections_.end() && found->second.is_of_forger;
}

void SimNetwork::MaybeForge(PortId to, const Message& message) {
  if (!IsForgeable(message) || !of_forgery_.Chance(config_.forgery)) return;
  const HostId receiver = ports_.at(to).host;
  std::vector<std::pair<PortId, HostileName>> forgers;
  for (const auto& [port, candidate] : ports_) {
    const auto hostile = hostile_.find(candidate.host);
    if (hostile == hostile_.end() || candidate.host == receiver) continue;
    const HostileName self = hostile->second();
    if (self.node != NodeId()) forgers.emplace_back(port, self);
  }
  if (forgers.empty()) return;
  const auto [forger, self] = forgers[of_forgery_.Below(forgers.size())];
  const uint64_t id = ForgersConnection(forger, to);
  if (id == 0) return;
  Message forged = message;
  CopyFrames(forged);
  Forge(of_forgery_, forged);
  proto::Header& header = *forged.envelope.mutable_header();
  header.set_incarnation(self.incarnation.value());
  // Without keys it can give the number of any node, but it does not know that of its process.
  if (of_forgery_.Chance(0.3)) {
    simulator_.Count("forgery_in_anothers_name");
  } else {
    header.set_node(self.node.value());
  }
  if (!forged.envelope.has_push_reply() && !forged.envelope.has_pull_reply()) {
    header.set_request_id(kForgedRequests + ++forged_);
  }
  simulator_.Count("forgery_sent");
  // Data ports accept no other bodies (common/net/wire.h).
  if (!IsOfDataPlane(forged.envelope)) return Lose(forged, "forgery_of_control_plane");
  Carry(id, 0, std::move(forged));
}

uint64_t SimNetwork::ForgersConnection(PortId forger, PortId to) {
  for (const auto& [id, connection] : connections_) {
    const bool is_between = connection.ends[0] == forger && connection.ends[1] == to;
    if (connection.is_of_forger && connection.open && is_between) return id;
  }
  const auto listener = listeners_.find(ports_.at(to).endpoint);
  if (listener == listeners_.end() || listener->second != to) return 0;
  const uint64_t id = next_connection_++;
  connections_[id] = {.ends = {forger, to}, .is_of_forger = true};
  return id;
}

void SimNetwork::NoteAnswer(const Message& message) {
  const absl::Status status = StatusOf(message);
  simulator_.Count(
      status.ok() ? "forgery_answered"
                  : absl::StrCat("forgery_refused_",
                                 absl::AsciiStrToLower(absl::StatusCodeToString(status.code()))));
}

int SimNetwork::EndOf(const Connection& connection, PortId port) {
  const int end = connection.ends[0] == port ? 0 : 1;
  COVEY_CHECK(connection.ends[end] == port);
  return end;
}

void SimNetwork::Carry(uint64_t id, int from_end, Message message) {
  Connection& connection = connections_.at(id);
  ++connection.under_way[from_end];
  const HostId from = ports_.at(connection.ends[from_end]).host;
  const HostId to = ports_.at(connection.ends[1 - from_end]).host;
  absl::Time leaves = simulator_.now();
  absl::Duration delay = Delay();
  if (!impairments_.empty()) {
    const Impairment impairment = ImpairmentOf(from, to);
    delay += impairment.delay + impairment.jitter * random_.Uniform();
    if (impairment.bits_per_second > 0) {
      absl::Time& busy_until = links_[{from, to}].busy_until;
      busy_until = std::max(busy_until, leaves) +
                   absl::Seconds(1) * (8 * static_cast<double>(BytesOf(message)) /
                                       static_cast<double>(impairment.bits_per_second));
      leaves = busy_until;
    }
  }
  absl::Time& last = connection.last_arrival[from_end];
  last = std::max(last, leaves + delay);
  simulator_.At(last, [this, id, from_end, message = std::move(message)]() mutable {
    Arrive(id, from_end, std::move(message));
  });
}

void SimNetwork::Arrive(uint64_t id, int from_end, Message message) {
  Connection& connection = connections_.at(id);
  --connection.under_way[from_end];
  const auto receiver = ports_.find(connection.ends[1 - from_end]);
  if (receiver == ports_.end()) return Lose(message, "receiver_gone");
  if (!connection.open) {
    if (!random_.Chance(kLateChance)) return Lose(message, "disconnected");
    simulator_.Count("network_late_after_reconnect");
  }
  const auto sender = ports_.find(connection.ends[from_end]);
  if (sender != ports_.end() && links_[{sender->second.host, receiver->second.host}].blocked > 0) {
    return Lose(message, "partitioned");
  }
  if (connection.is_of_forger && from_end == 1) return NoteAnswer(message);
  message.connection = id;
  receiver->second.deliver(std::move(message));
}

void SimNetwork::Unclog(HostId from, HostId to) {
  Link& link = links_[{from, to}];
  if (--link.clogged > 0) return;
  for (auto& [port, message] : std::exchange(link.held, {})) {
    if (ports_.find(port) == ports_.end()) continue;
    const uint64_t id = ConnectionFor(port, message);
    if (id == 0) {
      Lose(message, "nowhere_to_go");
    } else {
      Carry(id, EndOf(connections_.at(id), port), std::move(message));
    }
  }
}

void SimNetwork::Disconnect(HostId a, HostId b) {
  simulator_.Count("network_disconnect");
  for (auto& [id, connection] : connections_) {
    if (!connection.open) continue;
    const HostId x = ports_.at(connection.ends[0]).host;
    const HostId y = ports_.at(connection.ends[1]).host;
    if ((x == a && y == b) || (x == b && y == a)) Break(connection);
  }
}

void SimNetwork::Heal() {
  config_.tail_chance = config_.loss = config_.corruption = config_.retry = config_.reconnect = 0;
  config_.forgery = 0;
}

absl::Duration SimNetwork::Delay() {
  // The cube of a uniform number has mean 1/4 and a tail. It avoids logarithms, which libraries
  // round differently.
  const double u = random_.Uniform();
  absl::Duration delay = config_.delay_min + config_.delay_more * (4 * u * u * u);
  if (random_.Chance(config_.tail_chance)) {
    simulator_.Count("network_long_delay");
    delay += config_.tail * random_.Uniform();
  }
  return delay;
}

}  // namespace covey::sim
