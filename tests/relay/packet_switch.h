// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/random.h"
#include "common/faults/fault.h"

namespace covey::relay {

// The combined effect of faults on packets from one node to another.
struct LinkEffects {
  bool blocked = false;
  bool clogged = false;
  absl::Duration delay;
  absl::Duration jitter;
  double loss = 0;
  double duplicate = 0;
  double corrupt = 0;
  // 0 = no limit.
  uint64_t bits_per_second = 0;
};

// Of several faults on one link, delays and jitters add up, chances are independent, and the lowest
// rate counts. Pure.
LinkEffects EffectsOn(std::span<const Fault> in_force, absl::string_view from,
                      absl::string_view to);

// A switch for IPv4 packets between nodes, whose links fail according to a plan of faults. It has
// no devices and no clock: relay.cc provides both.
//
// The order on a link is kept, whatever the delays; a duplicate follows its original. Packets in
// flight when a partition begins are lost. A rate's queue holds kQueueMax worth of time, and a
// clogged link kCloggedBytesMax; more is dropped, as a real switch would do.
//
// Actor-confined; deterministic: the same seed, packets and times give the same losses.
class PacketSwitch {
 public:
  static constexpr absl::Duration kQueueMax = absl::Milliseconds(200);
  static constexpr size_t kCloggedBytesMax = 32 << 20;

  struct Port {
    std::string name;
    uint32_t address;  // IPv4
  };
  struct Delivery {
    size_t to;
    std::string packet;
  };
  // Packet counts since the beginning.
  struct Counts {
    uint64_t delivered = 0;
    uint64_t blocked = 0;
    uint64_t lost = 0;
    uint64_t overflowed = 0;
    uint64_t duplicated = 0;
    uint64_t corrupted = 0;
    // Not IPv4, or to an unknown address.
    uint64_t unknown = 0;
  };

  PacketSwitch(std::vector<Port> ports, uint64_t seed);

  // Replaces all faults so far.
  void SetFaults(absl::Time now, std::span<const Fault> in_force);
  void Receive(absl::Time now, size_t from, absl::string_view packet);
  // The packets that arrive up to `now`, each once, in order of time.
  std::vector<Delivery> Due(absl::Time now);
  // Infinite when nothing is in flight.
  absl::Time NextAt() const;
  const Counts& counts() const { return counts_; }

 private:
  struct Link {
    Link(size_t from, size_t to, Random random) : from(from), to(to), random(random) {}
    size_t from;
    size_t to;
    Random random;
    LinkEffects effects;
    // When all packets accepted so far have been sent, at the link's rate.
    absl::Time free_at = absl::InfinitePast();
    absl::Time last_arrival = absl::InfinitePast();
    std::deque<std::string> clogged;
    size_t clogged_bytes = 0;
  };
  struct UnderWay {
    size_t link;
    std::string packet;
  };

  void Admit(absl::Time now, Link& link, std::string packet);
  void Send(absl::Time now, Link& link, std::string packet);

  const std::vector<Port> ports_;
  std::vector<Link> links_;  // [from * ports + to]
  // By (arrival, order of sending).
  std::map<std::pair<absl::Time, uint64_t>, UnderWay> under_way_;
  uint64_t sent_ = 0;
  Counts counts_;
};

}  // namespace covey::relay
