// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/engine/operation.h"
#include "common/base/random.h"
#include "proto/view.pb.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/cluster/scripted_client.h"
#include "tests/sim/workloads/deadline_watch.h"
#include "tests/sim/workloads/snapshot/example_truth.h"
#include "tests/sim/workloads/snapshot/held_examples.h"
#include "tests/sim/workloads/snapshot/snapshot_plan.h"
#include "tests/sim/workloads/snapshot/snapshot_progress.h"

namespace covey::sim {

// The program of a group's member. The first one leads: in each step it trains some examples,
// pushes, and reads back; a step that fails is pushed again. A member that led before trains what
// it holds in the steps of the others. In the first job it trains until it is killed. In the last
// one it ends when all examples are finished and it has taken enough steps.
//
// Actor-confined. Everything that the options refer to outlives it.
class SnapshotTrainer : public Script {
 public:
  struct Options {
    const SnapshotPlan& plan;
    SnapshotProgress& progress;
    ExampleTruth& examples;
    Violations& violations;
    // The longest pause between two steps; each trainer draws its own.
    absl::Duration think_max;
  };
  SnapshotTrainer(const Options& options, Random random);

  void Step(absl::Time now, client::ClientActor& client, Outbox& outbox) override;
  absl::Time NextWake() const override;
  bool done() const override { return done_; }

 private:
  bool is_last_job() const { return job_ > 1; }
  // A shard that lost its servers waits for steps that its groups will not push again.
  bool IsBeyondRepair() const;
  void Join(const proto::Group& group);
  // Takes part in the steps that the group's first member pushes.
  void Follow(const proto::Group& group, client::ClientActor& client);
  void Train(absl::Time now, const proto::Group& group, client::ClientActor& client,
             Outbox& outbox);
  // The tables that steps are pushed to, in this order.
  enum class Which { kEach, kRare, kRows };
  static constexpr size_t kTables = 3;
  // Whether all tables that are used are in this node's view; else creates them.
  bool HasTables(absl::Time now, client::ClientActor& client, Outbox& outbox);
  bool IsUsed(Which which) const;
  // The table that the step is pushed to after this one; nothing when it was the last.
  std::optional<Which> After(Which which) const;
  // Pushes the step to the table, then to those after it.
  void Push(absl::Time now, Which which, const proto::Group& group, uint64_t element,
            client::ClientActor& client, Outbox& outbox);
  // The push of a step to the table; sets gradient_, and makes room in values_.
  client::Operation MakePush(Which which, uint64_t element, client::ClientActor& client);
  void Pushed(absl::Time now, GroupId group, const absl::Status& status,
              client::ClientActor& client);
  // Waits until all pushes are durable, then ends.
  void Leave(absl::Time now, GroupId group, client::ClientActor& client, Outbox& outbox);

  const Options run_;
  int job_ = 0;  // with which it is registered; 0 = with none yet
  Random random_;
  // By Which.
  std::array<TableCreation, kTables> creations_;
  std::array<TableId, kTables> ids_ = {};
  DeadlineWatch watch_;
  HeldExamples examples_;
  const absl::Duration think_max_;
  bool has_group_ = false;   // in the newest view
  uint64_t first_step_ = 0;  // of the group; 0 = not joined
  uint64_t step_ = 0;
  bool again_ = false;  // the push of step_ has failed
  std::vector<proto::WorkItem> batch_;
  bool leads_ = false;
  // Of a member that does not lead: examples that it trains in this step of this group.
  std::vector<proto::WorkItem> followed_;
  covey::Step followed_step_;
  GroupId followed_group_;
  uint64_t samples_ = 0;
  absl::Time next_ = absl::InfinitePast();
  bool under_way_ = false;
  bool done_ = false;
  std::vector<float> gradient_;
  std::vector<float> values_;
};

}  // namespace covey::sim
