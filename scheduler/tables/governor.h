#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/cluster/ids.h"
#include "proto/log.pb.h"
#include "proto/scheduler.pb.h"
#include "scheduler/config.h"
#include "scheduler/tables/tables.h"

namespace covey::scheduler {

// Watches, in the heartbeats of servers, how asynchronous each table is, and gives one whose
// momentum cannot be held at its target any more a buffered contract (momentum_governor.h has the
// rule). It does not switch back: whether the groups would be even again on arrival cannot be seen
// while they are buffered.
//
// Reads the view in `state`, which outlives it, as `tables` does. Actor-confined, deterministic.
// What it has heard is forgotten at a restart, and heard again within a heartbeat.
class Governor {
 public:
  Governor(const Config& config, const proto::LogRecord& state, Tables& tables)
      : config_(config), state_(state), tables_(tables) {}

  // What a server says in a heartbeat. Returns what was decided, each of which has raised the epoch
  // by one.
  std::vector<std::string> Hear(NodeId server, const proto::ServerLoad& load);
  // A node that is no longer ALIVE.
  void Forget(NodeId node);

 private:
  // Of a table in the view. "" = nothing is decided.
  std::string Judge(TableId id);

  const Config& config_;
  const proto::LogRecord& state_;
  Tables& tables_;
  // The newest report of each server about each table.
  std::map<TableId, std::map<NodeId, proto::TableAsynchrony>> reports_;
};

}  // namespace covey::scheduler
