// SPDX-License-Identifier: Apache-2.0
#include "worker/group/link_prober.h"

#include <algorithm>
#include <array>

namespace covey::worker {
namespace {

using Stage = StagedProber::Stage;
// The first large probe touches memory for the first time.
constexpr std::array kStages = {Stage{},
                                Stage{},
                                Stage{},
                                Stage{.messages = LinkProber::kBurst},
                                Stage{.bytes = LinkProber::kSmallProbeBytes},
                                Stage{.bytes = LinkProber::kLargeProbeBytes},
                                Stage{.bytes = LinkProber::kLargeProbeBytes}};
// The peer may not know of the group yet, and keeps the probe until it does. It is waited for
// anyway by the first collective.
constexpr absl::Duration kFirstContact = absl::Seconds(2);
// Long enough for the large probe on a link of 3 MB/s. A token bucket lets the small one through at
// once, so that only the large one shows how slow such a link is.
constexpr absl::Duration kPatience = absl::Milliseconds(200);
// Longer than a busy machine delays a small probe.
constexpr absl::Duration kSlow = absl::Milliseconds(10);
constexpr StagedProber::Options kOptions = {.stages = kStages,
                                            .contact_every = kFirstContact,
                                            .contact_max = kFirstContact,
                                            .patience = kPatience,
                                            .slow = kSlow};

}  // namespace

void LinkProber::Begin(absl::Time now, uint32_t rank, std::span<const TopologyPath> paths) {
  peers_.clear();
  const auto size = static_cast<uint32_t>(paths.size());
  for (size_t level = 0; level < kLevels; ++level) {
    std::vector<uint32_t> others;  // in the order after `rank`
    bool mine = true;              // nobody nearer measures this level
    for (uint32_t i = 1; i < size; ++i) {
      const uint32_t other = (rank + i) % size;
      const Level common = CommonLevel(paths[rank], paths[other]);
      if (common == static_cast<Level>(level)) others.push_back(other);
      if (common < static_cast<Level>(level) && other < rank) mine = false;
    }
    if (!mine || others.empty()) continue;
    peers_.push_back({.rank = others[0], .level = static_cast<Level>(level)});
    if (others.size() > 2) {
      peers_.push_back({.rank = others[others.size() / 2], .level = static_cast<Level>(level)});
    }
  }
  prober_.Begin(now, peers_.size(), kOptions);
}

std::vector<LinkProber::Probe> LinkProber::TakeProbes() {
  std::vector<Probe> probes;
  for (const StagedProber::Probe& probe : prober_.TakeProbes()) {
    probes.push_back(
        {.peer = peers_[probe.peer].rank, .number = probe.number, .bytes = probe.bytes});
  }
  return probes;
}

void LinkProber::Echo(absl::Time now, uint32_t rank, uint64_t number) {
  const auto peer =
      std::find_if(peers_.begin(), peers_.end(), [&](const Peer& one) { return one.rank == rank; });
  prober_.Echo(now, static_cast<size_t>(peer - peers_.begin()), number);
}

std::vector<LinkSample> LinkProber::samples() const {
  std::vector<LinkSample> samples;
  for (const StagedProber::Trip& trip : prober_.trips()) {
    samples.push_back({.level = peers_[trip.peer].level,
                       .bytes = trip.stage.bytes,
                       .messages = trip.stage.messages,
                       .round_trip_seconds = absl::ToDoubleSeconds(trip.took)});
  }
  return samples;
}

}  // namespace covey::worker
