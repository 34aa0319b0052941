#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
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
  // The step that it computes; 0 = none.
  Step computing;
  // The step whose values it has.
  Step values;
  // The last step that its group took without it.
  Step aside;
  uint64_t steps_aside = 0;
};

// A step of a group that is over. Times are means over its members, in seconds.
struct StepRecord {
  double samples = 0;
  uint32_t members = 0;
  double compute = 0;
  double waiting_for_members = 0;
  double collectives = 0;
  double servers = 0;
};

// One group: members compute, exchange, push, wait for the answer and go on. Late members are left
// aside when told so. Under a local contract only every h-th step goes to the servers.
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
    SimulatedShard& shard;
    std::vector<NodeState>& nodes;
    // Told when a node has computed a step on so many samples; whether its group still wants it.
    std::function<void(uint32_t node, absl::Duration compute, double samples)> computed;
    std::function<void(const StepRecord& record)> finished;
    // A node that was removed has done its last step here.
    std::function<void(uint32_t node)> left;
  };

  SimulatedGroup(const World& world, GroupId id, std::shared_ptr<const Membership> membership);

  void Start();
  // The answer to the push of `step` leaves the servers.
  void Answer(Step step, Version version);

  GroupId id() const { return id_; }
  const Membership& membership() const { return *membership_; }
  void SetMembership(std::shared_ptr<const Membership> membership);
  // By rank; empty = even.
  void SetShares(const std::vector<uint32_t>& shares);
  // 0 = everybody is waited for.
  void SetPartial(uint32_t minimum_members, absl::Duration grace);

 private:
  struct Running {
    std::shared_ptr<const Membership> membership;
    std::shared_ptr<Exchange> exchange;
    // The push whose answer this step waits for; 0 = none.
    Step awaited;
    std::vector<bool> submitted;
    uint32_t contributors = 0;
    uint32_t gathered = 0;
    double samples = 0;
    // Sums over contributors, and over members; seconds since the start.
    double begun_sum = 0;
    double computed_sum = 0;
    double gathered_sum = 0;
    double submitted_last = 0;
    double reduced = 0;
    double returned = 0;
  };

  double Now() const { return absl::ToDoubleSeconds(world_.simulator.now() - absl::UnixEpoch()); }
  Running& RunningOf(Step step);
  Exchange::Listener ListenerFor(Step step, bool push);

  // `rank`: where the node was in the step before, if it was in the group.
  void Begin(Step step, uint32_t node, uint32_t rank);
  void OnComputed(Step step, uint32_t node, uint32_t rank, double begun, double samples);
  void Submit(Step step, uint32_t rank);
  void LeaveLateAside(Step step);
  void OnReduced(Step step);
  void OnGathered(Step step, uint32_t rank);
  void Finish(Step step, const Running& running);

  // Constant after construction.
  const World& world_;
  const GroupId id_;

  // Owned by the simulator's thread.
  std::shared_ptr<const Membership> membership_;  // of steps that nobody has begun
  std::vector<double> shares_;                    // times an even one; empty = even
  uint32_t minimum_members_ = 0;
  absl::Duration grace_;
  std::map<Step, Running> running_;
  Step begun_;
  Step finished_;
  Step answered_;
  Version version_;
  double round_samples_ = 0;  // local: since the last push
};

}  // namespace covey::cli
