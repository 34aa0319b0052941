// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "scheduler/state/cluster_state.h"

namespace covey::scheduler {

// A state for tests, set up without decisions; its decisions are read as text.
class TestState : public ClusterState {
 public:
  explicit TestState(JobSpec job = {}) : ClusterState(std::move(job), std::nullopt) {}

  JobSpec& job() { return job_; }
  proto::LogRecord& record() { return record_; }
  proto::ClusterView* mutable_view() { return record_.mutable_view(); }

  // Makes Chains look for shards to place differently, although no decision asks for it.
  void AffectPlacement() {
    Transaction change(*this);
    change.Add(TableDropped{});
    change.Commit();
    TakeDecisions();
  }

  // The texts of the decisions since the last call.
  std::vector<std::string> TakeTexts() {
    std::vector<std::string> texts;
    for (Decision& decision : TakeDecisions()) texts.push_back(std::move(decision.text));
    return texts;
  }
  // The same in one; "" = none.
  std::string News() { return absl::StrJoin(TakeTexts(), "\n"); }
};

}  // namespace covey::scheduler
