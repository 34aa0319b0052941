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

// The state of a node, in whichever group it is.
struct NodeState {
  // None: it is moving to another group, or in none.
  std::optional<GroupId> group;
  // The current step and the position in it: `tensor` is the next one that the node computes with,
  // once it has the previous step's values.
  Step step;
  uint32_t rank = 0;
  uint32_t tensor = 0;
  bool waiting = false;
  // When the step began, how long it computes in total, and on how many samples.
  double begun = 0;
  absl::Duration compute;
  double samples = 0;
  // The step whose values the node has, per tensor.
  std::vector<Step> values;
  // The last step that its group finished without it.
  Step aside;
  uint64_t steps_aside = 0;
};

// A finished step of a group. Times are means over its members, in seconds.
struct StepRecord {
  GroupId group;
  double samples = 0;
  uint32_t members = 0;
  double compute = 0;
  double waiting_for_members = 0;
  double collectives = 0;
  double servers = 0;
};

// One group. A member's step is a forward pass, first tensor to last, which waits for the values of
// each, and a backward pass, last to first, which submits the gradient of each; so communication
// overlaps computation as in worker/hybrid_step.h. Each tensor has an exchange of its own. Late
// members are left out when the partial quorum allows it. Under a local contract only every h-th
// step goes to the servers.
//
// Membership, shares and the number of members waited for change at the next step that no member
// has begun.
//
// Actor-confined; outlives the simulator's events. Deterministic.
class SimulatedGroup {
 public:
  // State that all groups share.
  struct World {
    const ClusterOptions& options;
    Simulator& simulator;
    Fabric& fabric;
    StepTimes& step_times;
    // One per tensor.
    std::vector<std::unique_ptr<SimulatedShard>>& shards;
    std::vector<NodeState>& nodes;
    // Called when a node has computed a step on this many samples.
    std::function<void(uint32_t node, absl::Duration compute, double samples)> computed;
    std::function<void(const StepRecord& record)> finished;
    // A removed node has finished its last step here.
    std::function<void(uint32_t node)> left;
  };

  SimulatedGroup(const World& world, GroupId id, std::shared_ptr<const Membership> membership);

  void Start();
  // A node that was removed elsewhere starts here, at the next step. It is in the membership.
  void Join(uint32_t node);
  // The reply to a tensor's push of `step` leaves the servers.
  void Answer(uint32_t tensor, Step step, Version version);

  GroupId id() const { return id_; }
  const Membership& membership() const { return *membership_; }
  void SetMembership(std::shared_ptr<const Membership> membership);
  // By rank; empty = even.
  void SetShares(const std::vector<uint32_t>& shares);
  // 0 = all members are waited for.
  void SetPartial(uint32_t minimum_members, absl::Duration grace);

 private:
  // The state of a tensor in one step.
  struct Lane {
    std::shared_ptr<Exchange> exchange;
    // The push whose reply it waits for; 0 = none.
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
  // The state of a tensor across steps.
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

  // `rank`: the node's rank in the previous step, if it was in the group.
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
  std::shared_ptr<const Membership> membership_;  // of steps that no member has begun
  std::vector<double> shares_;                    // relative to an even share; empty = even
  uint32_t minimum_members_ = 0;
  absl::Duration grace_;
  std::map<Step, Running> running_;
  std::vector<Track> tracks_;  // per tensor
  absl::Time links_free_ = absl::InfinitePast();
  Step begun_;
  Step finished_;
};

}  // namespace covey::cli
