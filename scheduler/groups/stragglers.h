#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/grouping/straggler_ladder.h"
#include "proto/log.pb.h"
#include "proto/scheduler.pb.h"
#include "scheduler/config.h"
#include "scheduler/groups/groups.h"

namespace covey::scheduler {

// Feeds the straggler ladder from heartbeats and carries out what it decides, through Groups.
//
// Reads the view in `state`, which outlives it, as `groups` does. Each decision raises the epoch by
// one. Actor-confined, deterministic. What the ladder has learnt is forgotten at a restart; what it
// has decided is in the view.
class Stragglers {
 public:
  using Decision = Groups::Decision;

  Stragglers(const Config& config, const proto::LogRecord& state, Groups& groups)
      : state_(state), groups_(groups), ladder_(config.stragglers) {}

  // What a worker says in a heartbeat. Heartbeats that repeat its last report count for nothing.
  Decision Hear(absl::Time now, NodeId worker, const proto::Progress& progress);
  // Workers whose probation is over.
  std::vector<Decision> Tick(absl::Time now);
  // A node that is no longer ALIVE.
  void Forget(NodeId node);

  void FillStatus(proto::StatusReply& reply) const;

 private:
  using Action = StragglerLadder::Action;

  // Groups in force, from the view when its epoch has changed.
  void Refresh();
  Decision CarryOut(absl::Time now, const Action& action);

  const proto::LogRecord& state_;
  Groups& groups_;
  StragglerLadder ladder_;
  std::map<NodeId, proto::Progress> last_;
  std::optional<Epoch> epoch_;  // that the following are of
  std::vector<StragglerLadder::GroupInForce> in_force_;
  std::map<NodeId, size_t> group_of_;  // index into in_force_
  std::vector<StragglerLadder::Member> evicted_;
};

}  // namespace covey::scheduler
