// SPDX-License-Identifier: Apache-2.0
#include "tests/relay/packet_switch.h"

#include <algorithm>

namespace covey::relay {
namespace {

constexpr size_t kIpv4HeaderBytes = 20;
constexpr size_t kDestinationAt = 16;

// 0: not an IPv4 packet.
uint32_t DestinationOf(absl::string_view packet) {
  if (packet.size() < kIpv4HeaderBytes || (static_cast<uint8_t>(packet[0]) >> 4) != 4) return 0;
  uint32_t address = 0;
  for (size_t i = 0; i < 4; ++i) {
    address = address << 8 | static_cast<uint8_t>(packet[kDestinationAt + i]);
  }
  return address;
}

// The probability that at least one of two independent events occurs.
double Either(double a, double b) { return 1 - (1 - a) * (1 - b); }

bool Concerns(const Fault& fault, absl::string_view from, absl::string_view to) {
  const bool forward = fault.target == from && fault.other == to;
  switch (fault.kind) {
    case FaultKind::kIsolate:
      return fault.target == from || fault.target == to;
    case FaultKind::kPartition:
      return forward || (fault.target == to && fault.other == from);
    case FaultKind::kOneWayPartition:
    case FaultKind::kClog:
      return forward;
    default:
      return (fault.target == kEverybody || fault.target == from) &&
             (fault.other.empty() || fault.other == to);
  }
}

}  // namespace

LinkEffects EffectsOn(std::span<const Fault> in_force, absl::string_view from,
                      absl::string_view to) {
  LinkEffects effects;
  for (const Fault& fault : in_force) {
    if (!Concerns(fault, from, to)) continue;
    switch (fault.kind) {
      case FaultKind::kIsolate:
      case FaultKind::kPartition:
      case FaultKind::kOneWayPartition:
        effects.blocked = true;
        break;
      case FaultKind::kClog:
        effects.clogged = true;
        break;
      case FaultKind::kDelay:
        effects.delay += fault.by;
        break;
      case FaultKind::kJitter:
        effects.jitter += fault.by;
        break;
      case FaultKind::kLoss:
        effects.loss = Either(effects.loss, fault.chance);
        break;
      case FaultKind::kDuplicate:
        effects.duplicate = Either(effects.duplicate, fault.chance);
        break;
      case FaultKind::kCorrupt:
        effects.corrupt = Either(effects.corrupt, fault.chance);
        break;
      case FaultKind::kRate:
        effects.bits_per_second = effects.bits_per_second == 0
                                      ? fault.bits_per_second
                                      : std::min(effects.bits_per_second, fault.bits_per_second);
        break;
      case FaultKind::kKill:
      case FaultKind::kStop:
      case FaultKind::kHang:
      case FaultKind::kSlow:
      case FaultKind::kRestart:
      case FaultKind::kDisconnect:
        break;  // of processes and their connections
    }
  }
  return effects;
}

PacketSwitch::PacketSwitch(std::vector<Port> ports, uint64_t seed) : ports_(std::move(ports)) {
  const Random random(seed);
  for (size_t from = 0; from < ports_.size(); ++from) {
    for (size_t to = 0; to < ports_.size(); ++to) {
      links_.emplace_back(from, to, random.Split(links_.size()));
    }
  }
}

void PacketSwitch::SetFaults(absl::Time now, std::span<const Fault> in_force) {
  for (Link& link : links_) {
    link.effects = EffectsOn(in_force, ports_[link.from].name, ports_[link.to].name);
    if (link.effects.clogged) continue;
    link.clogged_bytes = 0;
    for (const auto clogged = std::exchange(link.clogged, {});
         const std::string& packet : clogged) {
      Send(now, link, packet);
    }
  }
}

void PacketSwitch::Receive(absl::Time now, size_t from, absl::string_view packet) {
  const uint32_t destination = DestinationOf(packet);
  const auto port = std::find_if(ports_.begin(), ports_.end(), [destination](const Port& port) {
    return port.address == destination;
  });
  if (destination == 0 || port == ports_.end()) {
    ++counts_.unknown;
    return;
  }
  Link& link = links_[from * ports_.size() + static_cast<size_t>(port - ports_.begin())];
  if (link.effects.blocked) {
    ++counts_.blocked;
  } else if (link.random.Chance(link.effects.loss)) {
    ++counts_.lost;
  } else {
    Admit(now, link, std::string(packet));
  }
}

void PacketSwitch::Admit(absl::Time now, Link& link, std::string packet) {
  const LinkEffects& effects = link.effects;
  if (link.random.Chance(effects.corrupt)) {
    // Behind the header, so that the packet still reaches its destination.
    const size_t bits = 8 * (packet.size() - kIpv4HeaderBytes);
    if (bits > 0) {
      const size_t bit = 8 * kIpv4HeaderBytes + link.random.Below(bits);
      packet[bit / 8] = static_cast<char>(packet[bit / 8] ^ (1 << bit % 8));
      ++counts_.corrupted;
    }
  }
  const bool twice = link.random.Chance(effects.duplicate);
  if (twice) {
    ++counts_.duplicated;
    Send(now, link, packet);
  }
  Send(now, link, std::move(packet));
}

void PacketSwitch::Send(absl::Time now, Link& link, std::string packet) {
  const LinkEffects& effects = link.effects;
  if (effects.clogged) {
    if (link.clogged_bytes + packet.size() > kCloggedBytesMax) {
      ++counts_.overflowed;
      return;
    }
    link.clogged_bytes += packet.size();
    link.clogged.push_back(std::move(packet));
    return;
  }
  absl::Time arrival = now;
  if (effects.bits_per_second > 0) {
    const absl::Time begin = std::max(now, link.free_at);
    if (begin - now > kQueueMax) {
      ++counts_.overflowed;
      return;
    }
    link.free_at = begin + absl::Seconds(8.0 * static_cast<double>(packet.size()) /
                                         static_cast<double>(effects.bits_per_second));
    arrival = link.free_at;
  }
  arrival += effects.delay + effects.jitter * link.random.Uniform();
  arrival = std::max(arrival, link.last_arrival);
  link.last_arrival = arrival;
  const size_t index = link.from * ports_.size() + link.to;
  under_way_.emplace(std::make_pair(arrival, sent_++), UnderWay{index, std::move(packet)});
}

std::vector<PacketSwitch::Delivery> PacketSwitch::Due(absl::Time now) {
  std::vector<Delivery> due;
  while (!under_way_.empty() && under_way_.begin()->first.first <= now) {
    UnderWay arrived = std::move(under_way_.begin()->second);
    under_way_.erase(under_way_.begin());
    const Link& link = links_[arrived.link];
    if (link.effects.blocked) {
      ++counts_.blocked;
      continue;
    }
    ++counts_.delivered;
    due.push_back({link.to, std::move(arrived.packet)});
  }
  return due;
}

absl::Time PacketSwitch::NextAt() const {
  return under_way_.empty() ? absl::InfiniteFuture() : under_way_.begin()->first.first;
}

}  // namespace covey::relay
