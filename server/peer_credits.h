// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/time/time.h"
#include "common/cluster/ids.h"

namespace covey::server {

// How many bytes of requests each peer of a loop may have on the way to it (Envelope.credit_bytes):
// equal shares of a budget among those that were heard in the last ten seconds. So what has arrived
// and not been handled stays within the budget, however many there are. A peer may always have one
// request on the way, however large, so a small share stops nobody.
//
// Actor-confined. Pure. Limits: kNodesMax peers; further ones share without being counted.
class PeerCredits {
 public:
  static constexpr absl::Duration kHeardFor = absl::Seconds(10);
  static constexpr size_t kLeastBytes = 64 << 10;

  explicit PeerCredits(size_t budget) : budget_(budget) {}

  void Heard(absl::Time now, NodeId peer);
  // Of one peer.
  size_t Share() const;

 private:
  void Forget(absl::Time now);

  const size_t budget_;
  std::map<NodeId, absl::Time> heard_;
  absl::Time forget_at_ = absl::InfinitePast();
};

}  // namespace covey::server
