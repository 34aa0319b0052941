// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "proto/scheduler.pb.h"
#include "scheduler/state/cluster_state.h"

namespace covey::scheduler {

// Which workers are away: their programs are silent on purpose, and say so in heartbeats. Each
// heartbeat replaces what the one before it has said; a worker that says nothing, or whose time is
// over, is back. Not in the log: after a restart the next heartbeats say it again.
//
// Actor-confined, deterministic. `state` outlives it.
class AwayWorkers {
 public:
  explicit AwayWorkers(const ClusterState& state) : state_(state) {}

  // Of an ALIVE worker.
  void OnHeartbeat(absl::Time now, NodeId worker, const proto::HeartbeatRequest& request);
  // A node is no longer ALIVE.
  void OnDeparture(NodeId node) { Erase(node); }

  bool IsAway(absl::Time now, NodeId worker) const;
  // The workers that `worker` may have to wait for (HeartbeatReply.away): the members of its group
  // that are away for the longest, and the one of all other groups. O(log n), and O(n) after a
  // change of the view, n being the number of workers.
  void Tell(absl::Time now, NodeId worker, proto::HeartbeatReply& reply);
  void FillStatus(absl::Time now, proto::StatusReply& reply) const;

 private:
  struct Away {
    std::string reason;
    absl::Time until;
  };

  // The one that is away for the longest first.
  struct LongestFirst {
    template <typename Id>
    bool operator()(const std::pair<absl::Time, Id>& a, const std::pair<absl::Time, Id>& b) const {
      return std::tie(b.first, a.second) < std::tie(a.first, b.second);
    }
  };
  template <typename Id>
  using Ranking = std::set<std::pair<absl::Time, Id>, LongestFirst>;

  // Nothing when it is not away.
  std::optional<proto::Away> AwayOf(absl::Time now, NodeId worker) const;
  void Erase(NodeId worker);
  // Ranks a worker in its group until then, or takes it out of the ranking.
  void Rank(NodeId worker, absl::Time until);
  void Unrank(NodeId worker, absl::Time until);
  template <typename Edit>
  void EditRanking(NodeId worker, const Edit& edit);
  // Ranks all by the groups of the view, when its epoch has changed.
  void Refresh();

  const ClusterState& state_;
  std::map<NodeId, Away> away_;
  std::optional<Epoch> epoch_;          // of the view from which the following fields are
  std::map<NodeId, GroupId> group_of_;  // ACTIVE groups
  std::map<GroupId, Ranking<NodeId>> members_;
  Ranking<GroupId> groups_;  // by their first member
};

}  // namespace covey::scheduler
