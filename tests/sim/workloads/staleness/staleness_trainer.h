// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/engine/operation.h"
#include "common/base/random.h"
#include "proto/table.pb.h"
#include "proto/view.pb.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/cluster/scripted_client.h"
#include "tests/sim/workloads/deadline_watch.h"
#include "tests/sim/workloads/last_steps.h"
#include "tests/sim/workloads/staleness/staleness_plan.h"
#include "tests/sim/workloads/staleness/staleness_progress.h"
#include "tests/sim/workloads/truth/staleness_truth.h"

namespace covey::sim {

// The program of a group's only member: it pushes a step, reads back, and continues. It may leave
// early. When another member takes its group over, it gives way.
//
// Actor-confined. Everything that the options refer to outlives it.
class StalenessTrainer : public Script {
 public:
  struct Options {
    const StalenessPlan& plan;
    StalenessTruth& truth;
    LastSteps& last_steps;
    StalenessProgress& progress;
    Violations& violations;
    // The longest pause between two steps; each trainer draws its own.
    absl::Duration think_max;
    // There are no faults.
    bool quiet = false;
  };
  StalenessTrainer(const Options& options, Random random);

  void Step(absl::Time now, client::ClientActor& client, Outbox& outbox) override;
  absl::Time NextWake() const override;
  bool done() const override { return done_; }

 private:
  bool MayTrain(client::ClientActor& client, const proto::Group& group) const;
  // No faults, and no group has to wait for others.
  bool MayNotFail() const { return run_.quiet && !run_.plan.waits_for_steps(); }
  bool IsBeyondRepair() const;
  void GiveWay(absl::Time now, client::ClientActor& client, Outbox& outbox);
  void GaveWay(absl::Time now, const absl::Status& flushed);
  void Join(const proto::Group& group);
  void Train(absl::Time now, const proto::Table& table, const proto::Group& group,
             client::ClientActor& client, Outbox& outbox);
  void Push(absl::Time now, const proto::Table& table, const proto::Group& group,
            client::ClientActor& client, Outbox& outbox);
  void Pushed(absl::Time now, const absl::Status& status, bool pulled, client::ClientActor& client,
              Outbox& outbox);
  void Start(absl::Time now, client::Operation operation, client::ClientActor& client,
             Outbox& outbox);
  void Ended(absl::Time now, const absl::Status& status);
  absl::Time Deadline(absl::Time now);
  client::ReadBound Bound(const proto::Group& group);

  const Options run_;
  Random random_;
  TableCreation table_;
  DeadlineWatch watch_;
  const absl::Duration think_max_;
  const bool leaves_early_;
  uint64_t step_ = 0;
  bool again_ = false;  // the push of step_ has failed
  absl::Time next_ = absl::InfinitePast();
  bool under_way_ = false;
  bool gives_way_ = false;  // to another member of its group, for good
  bool flushing_ = false;
  bool done_ = false;
  std::vector<float> gradient_;
  std::vector<float> values_;
};

}  // namespace covey::sim
