// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/time/time.h"
#include "common/cluster/ids.h"

namespace covey::server {

// How many bytes of requests each peer of a loop may have in flight to it (Envelope.credit_bytes):
// equal shares of a budget, divided among the peers heard from in the last 10 s. So bytes that have
// arrived and are not handled yet stay within the budget, for any number of peers. A peer may
// always have one request in flight, of any size, so a small share never blocks it.
//
// Actor-confined. Pure. Limits: kNodesMax peers; further ones get a share without being counted.
class PeerCredits {
 public:
  static constexpr absl::Duration kHeardFor = absl::Seconds(10);
  static constexpr size_t kLeastBytes = 64 << 10;

  explicit PeerCredits(size_t budget) : budget_(budget) {}

  void Heard(absl::Time now, NodeId peer);
  // Peers have the shares of it once they are told; until then they may have more in flight.
  void SetBudget(size_t budget) { budget_ = budget; }
  // The share of one peer.
  size_t Share() const;

 private:
  void Forget(absl::Time now);

  size_t budget_;
  std::map<NodeId, absl::Time> heard_;
  absl::Time forget_at_ = absl::InfinitePast();
};

}  // namespace covey::server
