// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/random.h"
#include "common/cluster/ids.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/cluster/scripted_client.h"
#include "tests/sim/cluster/scripted_worker.h"
#include "tests/sim/cluster/sim_cluster.h"
#include "tests/sim/workloads/groups/group_results.h"
#include "tests/sim/workloads/groups/groups_plan.h"
#include "tests/sim/workloads/groups/mean_truth.h"
#include "tests/sim/workloads/groups/member_step.h"
#include "tests/sim/workloads/groups/pending_tensors.h"
#include "tests/sim/workloads/last_steps.h"
#include "tests/sim/workloads/truth/given_gradients.h"
#include "tests/sim/workloads/truth/staleness_truth.h"

namespace covey::sim {

// The program of one member of a group: it submits every tensor of every step, in an order of its
// own, and checks the results.
//
// Actor-confined. Everything that the options refer to outlives it.
class GroupsTrainer : public WorkerScript {
 public:
  struct Options {
    const GroupsPlan& plan;
    const SimCluster& cluster;
    GivenGradients& given;
    StalenessTruth& truth;
    GroupResults& results;
    MeanTruth& means;
    LastSteps& last_steps;
    std::map<std::string, NodeId>& finished;  // members with all steps
    Violations& violations;
    // Split by group and step, the same for all members: the division of the samples.
    Random step_draws;
    // Of this worker among all of the run.
    uint32_t index = 0;
    // The longest pause between two steps.
    absl::Duration think_max;
    // How long a program waits for an ordinary step.
    absl::Duration patience;
  };
  GroupsTrainer(const Options& options, std::string name, Random random);

  void Step(absl::Time now, worker::WorkerActor& worker, Outbox& outbox) override;
  absl::Time NextWake() const override;
  bool done() const override { return done_; }

 private:
  // tables --> pull --> think <--> submit
  //                       ^
  //                       +-----> flush   once, when the last steps are still in flight
  enum class Phase { kTables, kPull, kThink, kSubmit, kFlush };
  struct Tensor {
    explicit Tensor(proto::TableSpec spec) : table(std::move(spec)) {}
    TableCreation table;
    std::vector<float> gradient;
    std::vector<float> values;
    uint64_t mean_samples = 0;
    absl::Time submit_at = absl::InfiniteFuture();
  };

  // False: there is no group to train with, for now or for good.
  bool HasGroup(worker::WorkerActor& worker);
  bool SetTables(absl::Time now, worker::WorkerActor& worker, Outbox& outbox);
  void PullAll(absl::Time now, worker::WorkerActor& worker, Outbox& outbox);
  void Think(absl::Time now, worker::WorkerActor& worker, Outbox& outbox);
  void Begin(absl::Time now, worker::WorkerActor& worker, Outbox& outbox);
  void SubmitWhatIsDue(absl::Time now, worker::WorkerActor& worker, Outbox& outbox);
  void FlushAll(absl::Time now, worker::WorkerActor& worker, Outbox& outbox);
  void EndPhase(absl::Time now, worker::WorkerActor& worker);
  worker::TensorRequest RequestFor(absl::Time now, size_t tensor, worker::WorkerActor& worker);
  void Ended(size_t tensor, const absl::Status& status, worker::WorkerActor& worker);
  void Failed(size_t tensor, const absl::Status& status, worker::WorkerActor& worker);
  void Succeeded(size_t tensor, worker::WorkerActor& worker);
  void CheckOwnSteps(size_t tensor, MemberStep::Ended ended);
  // Where the program updates.
  void CheckMean(size_t tensor, worker::WorkerActor& worker);
  MeanTruth::Place PlaceOf(size_t tensor) const {
    return {.group = step_.group(), .step = step_.step(), .tensor = tensor};
  }
  // Of the elements that the gradients of this step are not 0 in.
  float Gradient() const;
  bool IsBeyondRepair() const;
  absl::Duration Patience() const;
  // Now and then the program is away before its next step, for longer than the others' patience.
  void GoAway(absl::Time now, worker::WorkerActor& worker);
  void End(absl::string_view why);

  const Options run_;
  const std::string name_;
  Random random_;
  std::vector<Tensor> tensors_;
  PendingTensors pending_;
  MemberStep step_;
  Phase phase_ = Phase::kTables;
  absl::Time next_ = absl::InfinitePast();
  absl::Time next_submit_ = absl::InfiniteFuture();
  bool done_ = false;
  bool failed_ = false;
  uint64_t position_ = 0;  // of the group
  uint64_t samples_ = 0;
};

}  // namespace covey::sim
