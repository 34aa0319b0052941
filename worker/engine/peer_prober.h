// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/cluster/view.h"
#include "common/net/message.h"
#include "common/runtime/actor.h"
#include "worker/group/staged_prober.h"

namespace covey::worker {

// What a worker does for the scheduler's survey of the network (proto/scheduler.proto ProbeOrder):
// it measures its links to the peers of an order, one after the other, and returns the probes of
// other workers, whether it is in a group or not.
//
//   per peer: first contact (not counted) -> kRoundTrips empty probes, of which the shortest counts
//   -> kSmallProbeBytes -> kLargeProbeBytes, unless the small one was slow
//
// Waits are bounded: a peer is contacted for kContactMax, a probe is waited for kPatience, and
// kOrderMax after the order has begun everything ends; what is not known by then counts as not
// answered or not measured.
//
// Only probes of ALIVE workers of the view are returned, limits.h kProbesAnsweredPerSecondMax at
// most, and never their frames. Actor-confined. Deterministic: times come from `now`.
class PeerProber {
 public:
  static constexpr size_t kRoundTrips = 4;
  static constexpr size_t kSmallProbeBytes = 32 << 10;
  static constexpr size_t kLargeProbeBytes = 512 << 10;
  static constexpr absl::Duration kContactEvery = absl::Milliseconds(200);
  static constexpr absl::Duration kContactMax = absl::Seconds(1);
  static constexpr absl::Duration kPatience = absl::Milliseconds(500);
  static constexpr absl::Duration kOrderMax = absl::Seconds(3);

  // What the scheduler asks for now; `order` 0 = nothing. Another order than the last one begins,
  // in place of one that is under way.
  void SetOrder(absl::Time now, const proto::ProbeOrder& order, const ClusterView& view,
                Outbox& outbox);
  // Closes the ways to peers that are no longer ALIVE.
  void SetView(const ClusterView& view, Outbox& outbox);
  // False: the message is no PeerProbe.
  bool Receive(absl::Time now, const Message& message, const ClusterView& view, Outbox& outbox);
  void Wake(absl::Time now, const ClusterView& view, Outbox& outbox);
  // InfiniteFuture() when no order is under way.
  absl::Time NextWake() const;

  // What was measured, once for each order that has ended.
  std::optional<proto::ProbeReport> TakeReport();

 private:
  void Answer(absl::Time now, const Message& probe, Outbox& outbox);
  void SendProbes(const ClusterView& view, Outbox& outbox);

  uint64_t order_ = 0;         // 0 = none
  std::vector<NodeId> peers_;  // of the order
  bool under_way_ = false;     // the order has no report yet
  absl::Time ends_ = absl::InfiniteFuture();
  StagedProber prober_;
  std::set<NodeId> routed_;  // peers to which the transport knows the way
  // Of the present second.
  absl::Time answers_until_ = absl::InfinitePast();
  size_t answers_ = 0;
};

}  // namespace covey::worker
