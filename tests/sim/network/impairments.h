// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "absl/time/time.h"
#include "tests/sim/network/host_id.h"

namespace covey::sim {

// Faults, beyond NetworkConfig, of what one host sends to another. A value.
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

// The impairments of a network at present. Actor-confined.
class Impairments {
 public:
  // Returns the id with which this one is removed; never 0.
  uint64_t Add(const Impairment& impairment);
  // Does nothing when it has been removed.
  void Remove(uint64_t id) { impairments_.erase(id); }
  bool empty() const { return impairments_.empty(); }

  // `base`, plus all impairments in this direction. Of several rates the newest one holds.
  Impairment Sum(const Impairment& base, HostId from, HostId to) const;

 private:
  std::map<uint64_t, Impairment> impairments_;
  uint64_t next_id_ = 1;
};

}  // namespace covey::sim
