// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/net/message.h"
#include "scheduler/state/cluster_state.h"

namespace covey::scheduler {

// Named barriers: the nodes that wait under a name are released when there are `participants` of
// them, all together or none.
//
//   open ── the last arrival ──▶ all are answered and remembered; the next arrival opens it again
//   open ── deadline or departure of a node ──▶ open, without the arrival of that node
//
// Invariants:
//  1. A request that was released stays released: a retry of it is answered with OK at once.
//  2. A node counts once, however many requests it sends; its newest request is answered.
//  3. Only ALIVE nodes are remembered, so memory is bounded by names and nodes.
//
// Edits `barriers` of the state, which outlives it. Actor-confined, deterministic. At most
// kBarrierNamesMax names at a time.
class Barriers {
 public:
  explicit Barriers(ClusterState& state) : state_(state) {}

  // A reply that is due.
  struct Answer {
    Message request;
    absl::Status status;
  };

  // `request` holds a BarrierRequest of an ALIVE node. Appends the replies that are due now to
  // `answers`. Errors: INVALID_ARGUMENT: malformed, or the callers disagree on the number of
  // participants; RESOURCE_EXHAUSTED: too many names.
  void Arrive(absl::Time now, const Message& request, std::vector<Answer>& answers);

  // Withdraws the arrivals whose deadline has passed. Their replies are DEADLINE_EXCEEDED, and name
  // the missing nodes.
  void Expire(absl::Time now, std::vector<Answer>& answers);
  // A node is no longer ALIVE. Withdraws its arrivals with ABORTED, and forgets its releases.
  void OnDeparture(NodeId node, std::vector<Answer>& answers);
  // The earliest deadline.
  absl::Time NextDeadline() const;

 private:
  struct Arrival {
    Message request;
    absl::Time deadline;
  };
  struct Gathering {
    uint32_t participants = 0;
    std::map<NodeId, Arrival> arrivals;
  };

  absl::Status Check(const Message& request) const;
  void ForgetReleases(NodeId node);
  bool WasReleased(const Message& request) const;
  absl::Status MissingStatus(const std::string& name, const Gathering& gathering,
                             NodeId caller) const;

  ClusterState& state_;
  std::map<std::string, Gathering> gatherings_;  // by name; never empty
};

}  // namespace covey::scheduler
