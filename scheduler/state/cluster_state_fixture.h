// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "absl/strings/str_join.h"
#include "scheduler/state/cluster_state.h"

namespace covey::scheduler {

// A state that tests fill in without decisions, and whose decisions they read as text.
class TestState : public ClusterState {
 public:
  explicit TestState(JobSpec job = {}) : ClusterState(std::move(job), std::nullopt) {}

  JobSpec& job() { return job_; }
  proto::LogRecord& record() { return record_; }
  proto::ClusterView* mutable_view() { return record_.mutable_view(); }

  // Shards may have to be placed differently, although no decision says so.
  void AffectPlacement() {
    Transaction change(*this);
    change.Add(TableDropped{});
    change.Commit();
    TakeDecisions();
  }

  // The decisions since the last call; "" = none.
  std::string News() { return absl::StrJoin(TakeDecisions(), "\n"); }
};

}  // namespace covey::scheduler
