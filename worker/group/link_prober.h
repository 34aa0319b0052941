// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "common/cluster/link_costs.h"
#include "common/cluster/topology.h"
#include "worker/group/staged_prober.h"

namespace covey::worker {

// Measures the links of one member when its group forms: round trips of small and larger probes, to
// at most two others per level of topology, one after the other (staged_prober.h).
//
//   first contact -> three empty ones -> kBurst empty ones at once -> kSmallProbeBytes ->
//   kLargeProbeBytes twice, until one of these is slow -> the next member
//
// Between domains only the lowest rank of each domain measures, because what they share is to be
// seen by one flow alone. A probe that is late counts as its deadline and ends the measurement of
// that member.
//
// Actor-confined. Deterministic: times come from `now`.
class LinkProber {
 public:
  static constexpr size_t kSmallProbeBytes = 32 << 10;
  static constexpr size_t kLargeProbeBytes = 512 << 10;
  static constexpr uint32_t kBurst = 8;
  static constexpr size_t kProbeSizes[] = {0, kSmallProbeBytes, kLargeProbeBytes};

  // The links of member `rank`; `paths` of all members, by rank.
  void Begin(absl::Time now, uint32_t rank, std::span<const TopologyPath> paths);

  struct Probe {
    uint32_t peer = 0;
    uint64_t number = 0;
    size_t bytes = 0;
  };
  // The probes to send since the last call; at most kBurst.
  std::vector<Probe> TakeProbes();
  // It came back. Others than the next one that is out have no effect.
  void Echo(absl::Time now, uint32_t peer, uint64_t number);
  void Wake(absl::Time now) { prober_.Wake(now); }
  // InfiniteFuture() when nothing is out.
  absl::Time NextWake() const { return prober_.NextWake(); }

  bool done() const { return prober_.done(); }
  std::vector<LinkSample> samples() const;

 private:
  struct Peer {
    uint32_t rank = 0;
    Level level = Level::kCluster;
  };

  std::vector<Peer> peers_;
  StagedProber prober_;
};

}  // namespace covey::worker
