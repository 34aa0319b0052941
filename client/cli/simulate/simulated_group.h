// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "client/cli/simulate/cluster_options.h"
#include "client/cli/simulate/exchange.h"
#include "client/cli/simulate/simulated_shard.h"
#include "client/cli/simulate/step_times.h"
#include "common/cluster/ids.h"

namespace covey::cli {

// What a node does, in whichever group it is.
struct NodeState {
  // None: it is on its way to another group, or in none.
  std::optional<GroupId> group;
  // The step that it is at, and where: `tensor` is the next one whose values it computes with, once
  // they are those of the step before.
  Step step;
  uint32_t rank = 0;
  uint32_t tensor = 0;
  bool waiting = false;
  // Of the step: when it began, how long it computes in all, and on how many samples.
  double begun = 0;
  absl::Duration compute;
  double samples = 0;
  // The step whose values it has, per tensor.
  std::vector<Step> values;
  // The last step that its group took without it.
  Step aside;
  uint64_t steps_aside = 0;
};

// A step of a group that is over. Times are means over its members, in seconds.
struct StepRecord {
  GroupId group;
  double samples = 0;
  uint32_t members = 0;
  double compute = 0;
  double waiting_for_members = 0;
  double collectives = 0;
  double servers = 0;
};

// One group: a member's step is a forward pass, first tensor to last, which waits for the values of
// each, and a backward pass, last to first, which submits the gradient of each; so communication
// overlaps computation as in worker/hybrid_step.h. Each tensor has an exchange of its own. Late
// members are left aside when told so. Under a local contract only every h-th step goes to the
// servers.
//
// Membership, shares and the number of members waited for change with the next step that nobody has
// begun.
//
// Actor-confined; outlives the simulator's events. Deterministic.
class SimulatedGroup {
 public:
  // What all groups share.
  struct World {
    const ClusterOptions& options;
    Simulator& simulator;
    Fabric& fabric;
    StepTimes& step_times;
    // One per tensor.
    std::vector<std::unique_ptr<SimulatedShard>>& shards;
    std::vector<NodeState>& nodes;
    // Told when a node has computed a step on so many samples.
    std::function<void(uint32_t node, absl::Duration compute, double samples)> computed;
    std::function<void(const StepRecord& record)> finished;
    // A node that was removed has done its last step here.
    std::function<void(uint32_t node)> left;
  };

  SimulatedGroup(const World& world, GroupId id, std::shared_ptr<const Membership> membership);

  void Start();
  // A node that was removed elsewhere begins here, with the next step. It is in the membership.
  void Join(uint32_t node);
  // The answer to a tensor's push of `step` leaves the servers.
  void Answer(uint32_t tensor, Step step, Version version);

  GroupId id() const { return id_; }
  const Membership& membership() const { return *membership_; }
  void SetMembership(std::shared_ptr<const Membership> membership);
  // By rank; empty = even.
  void SetShares(const std::vector<uint32_t>& shares);
  // 0 = everybody is waited for.
  void SetPartial(uint32_t minimum_members, absl::Duration grace);

 private:
  // A tensor of a step.
  struct Lane {
    std::shared_ptr<Exchange> exchange;
    // The push whose answer it waits for; 0 = none.
    Step awaited;
    std::vector<bool> submitted;  // by rank
    uint32_t gathered = 0;
    // Seconds since the start; sums over members.
    double submitted_sum = 0;
    double submitted_last = 0;
    double reduced = 0;
    double returned = 0;
    double gathered_sum = 0;
  };
  struct Running {
    std::shared_ptr<const Membership> membership;
    std::vector<Lane> lanes;
    uint32_t lanes_gathered = 0;
    uint32_t contributors = 0;
    // Sums over contributors.
    double samples = 0;
    double begun_sum = 0;
    double compute_sum = 0;
  };
  // A tensor from step to step.
  struct Track {
    Step answered;
    Step gathered;  // by all members
    Version version;
    double round_samples = 0;  // local: since the last push
  };

  double Now() const { return absl::ToDoubleSeconds(world_.simulator.now() - absl::UnixEpoch()); }
  uint32_t tensors() const { return world_.options.tensors; }
  Running& RunningOf(Step step);
  Lane MakeLane(Step step, uint32_t tensor);

  // `rank`: where the node was in the step before, if it was in the group.
  void Begin(Step step, uint32_t node, uint32_t rank);
  void Forward(uint32_t node);
  void Backward(uint32_t node, uint32_t tensor);
  void EndStep(uint32_t node);
  void Submit(Step step, uint32_t tensor, uint32_t rank);
  void LeaveLateAside(Step step);
  void OnReduced(Step step, uint32_t tensor);
  void OnGathered(Step step, uint32_t tensor, uint32_t rank);
  void TakeValues(uint32_t node, uint32_t tensor, Step step);
  StepRecord RecordOf(const Running& running) const;

  // Constant after construction.
  const World& world_;
  const GroupId id_;

  // Owned by the simulator's thread.
  std::shared_ptr<const Membership> membership_;  // of steps that nobody has begun
  std::vector<double> shares_;                    // times an even one; empty = even
  uint32_t minimum_members_ = 0;
  absl::Duration grace_;
  std::map<Step, Running> running_;
  std::vector<Track> tracks_;  // per tensor
  absl::Time links_free_ = absl::InfinitePast();
  Step begun_;
  Step finished_;
};

}  // namespace covey::cli
