// SPDX-License-Identifier: Apache-2.0
#include "server/peer_credits.h"

#include <algorithm>

#include "common/cluster/limits.h"

namespace covey::server {

void PeerCredits::Heard(absl::Time now, NodeId peer) {
  if (now >= forget_at_) Forget(now);
  const auto found = heard_.find(peer);
  if (found != heard_.end()) {
    found->second = now;
  } else if (heard_.size() < kNodesMax) {
    heard_.emplace(peer, now);
  }
}

size_t PeerCredits::Share() const {
  return std::max(kLeastBytes, budget_ / std::max<size_t>(1, heard_.size()));
}

void PeerCredits::Forget(absl::Time now) {
  std::erase_if(heard_, [now](const auto& entry) { return now - entry.second > kHeardFor; });
  forget_at_ = now + kHeardFor / 10;
}

}  // namespace covey::server
