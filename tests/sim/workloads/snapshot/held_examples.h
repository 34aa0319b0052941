// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "absl/time/time.h"
#include "client/engine/client_actor.h"
#include "common/runtime/actor.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/workloads/snapshot/snapshot_plan.h"

namespace covey::sim {

// The training examples of one program: asks the scheduler for items, hands them out to steps, and
// reports those that were trained, with their steps.
//
// Actor-confined. What the constructor takes outlives it.
class HeldExamples {
 public:
  HeldExamples(const SnapshotPlan& plan, Violations& violations)
      : plan_(plan), violations_(violations) {}

  // At most `examples` of what is held.
  std::vector<proto::WorkItem> Take(uint64_t examples);
  // All that was taken for this step is trained.
  void Finish(uint64_t step, const std::vector<proto::WorkItem>& items);
  // Asks for more, and reports, when it is time.
  void Step(absl::Time now, client::ClientActor& client, Outbox& outbox);
  absl::Time NextWake() const { return under_way_ || done_ ? absl::InfiniteFuture() : next_; }

  uint64_t held() const { return held_examples_; }
  // The scheduler has said that all examples are finished.
  bool done() const { return done_; }

 private:
  void Answered(absl::Time now, const absl::Status& status, const proto::Envelope* reply);

  const SnapshotPlan& plan_;
  Violations& violations_;
  std::deque<proto::WorkItem> held_;
  uint64_t held_examples_ = 0;
  std::vector<proto::WorkItem> finished_;  // not reported yet
  std::vector<proto::WorkItem> reported_;  // in the request under way
  uint64_t finished_step_ = 0;
  bool under_way_ = false;
  bool done_ = false;
  absl::Time next_ = absl::InfinitePast();
};

}  // namespace covey::sim
