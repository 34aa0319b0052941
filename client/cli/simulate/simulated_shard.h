// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "common/cluster/ids.h"
#include "common/contract/contract.h"
#include "common/contract/read_gate.h"
#include "common/contract/update_gate.h"
#include "common/simulation/simulator.h"

namespace covey::cli {

// One shard stands for all, since all servers get the same requests. The gates of the real servers
// decide when pushes become updates and when groups get their replies. Holds no values.
//
// Actor-confined; outlives the simulator's events. Deterministic.
class SimulatedShard {
 public:
  struct Listener {
    // A push has become part of an update; `staleness` is the number of updates between it and the
    // values that it was computed on.
    std::function<void(GroupId group, uint64_t staleness)> applied;
    // A push was too stale to be applied.
    std::function<void(GroupId group)> discarded;
    // The reply to the push of `step` leaves, with values of `version`.
    std::function<void(GroupId group, Step step, Version version)> answered;
  };

  SimulatedShard(Simulator& simulator, const Contract& contract, Listener listener)
      : simulator_(simulator), gate_(contract), listener_(std::move(listener)) {}

  // In growing order of id.
  void SetGroups(std::vector<LiveGroup> groups);

  // A push arrives that was computed on values of version `base`.
  void Push(const GatePush& push, Version base);

 private:
  struct Pending {
    GroupId group;
    Step step;
    ReadRequirement requirement;
  };

  void Settle();

  Simulator& simulator_;
  UpdateGate gate_;
  const Listener listener_;
  std::vector<LiveGroup> groups_;
  ClockVector clocks_;
  Version version_;
  // By the gate's number of the push; applied ones stay, a few bytes each.
  std::vector<std::pair<GatePush, Version>> pushes_;
  std::vector<Pending> pending_;
  absl::Time settle_at_ = absl::InfiniteFuture();
};

}  // namespace covey::cli
