// SPDX-License-Identifier: Apache-2.0
#include "worker/group/link_prober.h"

#include <array>
#include <utility>

namespace covey::worker {
namespace {

struct Stage {
  size_t bytes = 0;
  uint32_t messages = 1;
};
// The first large probe touches memory for the first time.
constexpr std::array kStages = {Stage{},
                                Stage{},
                                Stage{},
                                Stage{},
                                Stage{.messages = LinkProber::kBurst},
                                Stage{.bytes = LinkProber::kSmallProbeBytes},
                                Stage{.bytes = LinkProber::kLargeProbeBytes},
                                Stage{.bytes = LinkProber::kLargeProbeBytes}};
// The peer may not know of the group yet. It is waited for anyway by the first collective.
constexpr absl::Duration kFirstContact = absl::Seconds(2);
constexpr absl::Duration kPatience = absl::Milliseconds(20);
// A link that takes longer for a probe with bytes is known well enough.
constexpr absl::Duration kSlow = absl::Milliseconds(2);

}  // namespace

void LinkProber::Begin(absl::Time now, uint32_t rank, std::span<const TopologyPath> paths) {
  *this = LinkProber();
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
  if (!done()) Send(now);
}

void LinkProber::Send(absl::Time now) {
  returned_ = number_;
  for (uint32_t i = 0; i < kStages[stage_].messages; ++i) {
    probes_.push_back(
        {.peer = peers_[next_peer_].rank, .number = ++number_, .bytes = kStages[stage_].bytes});
  }
  sent_ = now;
  deadline_ = now + (stage_ == 0 ? kFirstContact : kPatience);
}

void LinkProber::NextPeer(absl::Time now) {
  deadline_ = absl::InfiniteFuture();
  stage_ = 0;
  ++next_peer_;
  if (!done()) Send(now);
}

std::vector<LinkProber::Probe> LinkProber::TakeProbes() { return std::exchange(probes_, {}); }

void LinkProber::Echo(absl::Time now, uint32_t peer, uint64_t number) {
  if (done() || peer != peers_[next_peer_].rank || number != returned_ + 1) return;
  if (++returned_ < number_) return;
  const absl::Duration took = now - sent_;
  AddSample(took);
  const bool slow = kStages[stage_].bytes > 0 && took > kSlow;
  if (++stage_ == kStages.size() || slow) {
    NextPeer(now);
  } else {
    Send(now);
  }
}

void LinkProber::AddSample(absl::Duration took) {
  if (stage_ == 0) return;
  samples_.push_back({.level = peers_[next_peer_].level,
                      .bytes = kStages[stage_].bytes,
                      .messages = kStages[stage_].messages,
                      .round_trip_seconds = absl::ToDoubleSeconds(took)});
}

void LinkProber::Wake(absl::Time now) {
  if (now < deadline_) return;
  // The reply has not come within the deadline: a round trip takes at least this duration.
  AddSample(now - sent_);
  NextPeer(now);
}

}  // namespace covey::worker
