// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "absl/container/btree_map.h"
#include "common/contract/contract.h"
#include "proto/scheduler.pb.h"

namespace covey {

// Momentum that asynchrony adds (Mitliagkas et al. 2016). Gradients that are `staleness` updates
// late on average, with memoryless delays, move the values on average as
//   E[v(t+1)] = mu * E[v(t)] - (1 - mu) * rate * E[gradient(t)],   mu = staleness / (1 + staleness)
// which is 1 - 1/G for G groups that push on arrival: each then sees G - 1 updates by others.
// Regular delays obey another law of the same mean delay.
double ImplicitMomentum(double staleness);

// What a governor has measured of a shard, as of one update. Part of the shard's content, so that a
// new head goes on with it.
struct AsynchronyEstimates {
  // Running mean over pushes; 0 before the first.
  double staleness = 0;
  // Pushes with a known staleness so far.
  uint64_t pushes = 0;
  // Updates in a row, up to now, for which asynchrony alone added more than the target.
  uint64_t updates_above_target = 0;
  friend bool operator==(const AsynchronyEstimates&, const AsynchronyEstimates&) = default;
};

// Keeps an asynchronous table at its user's momentum, so that the settings of a synchronous run
// carry over. Measures the staleness of pushes, and computes the momentum and the factor on the
// rate for each update.
//
//   momentum    = max(0, target - mu)
//   rate_factor = round_share * (1 - momentum) / (1 - target)
//
// Why a factor: with momentum m a gradient moves the values by rate / (1 - m) in the end. A
// synchronous run makes one update per round of all groups, and moves them by rate / (1 - target)
// per round. Here a round has 1 / round_share updates: 1 + staleness when each push is an update,
// so round_share = 1 - mu; groups / pushes in a buffered one. Equal displacement per round gives
// the factor. It makes the noise equal too: a lone push has G times the variance of a mean of G,
// and 1/G of the weight. Synchronous updates have staleness 0 and round_share 1, hence momentum =
// target and factor 1, exactly.
//
// Limits of the promise: whatever the momentum, a gradient that is a round late is unstable from
// rate / (1 - target) * largest curvature = pi / 2 on (x' = -k * x(t - 1)), where synchronous heavy
// ball may still be stable. Below 1 it needs as many rounds as the synchronous run, within 12 % in
// 64 settings on a noisy quadratic, and ends at the same loss:
// server/shard/implicit_momentum_test.cc.
//
// One per shard; a value. Actor-confined, deterministic.
class MomentumGovernor {
 public:
  // Pushes over which staleness is averaged: enough for 5 % when step times are memoryless.
  static constexpr uint64_t kPushesAveraged = 256;
  // cannot_hold is set after this many updates in a row above the target.
  static constexpr uint64_t kUpdatesAboveTargetMax = 256;

  // No target: measures only. `estimates`: those of the shard's content, which it continues.
  explicit MomentumGovernor(std::optional<double> target, const AsynchronyEstimates& estimates = {})
      : target_(target), estimates_(estimates) {}

  struct Update {
    size_t pushes = 1;
    size_t groups = 0;       // live ones; 0 = plain clients only
    bool on_arrival = true;  // the contract makes each push an update
  };
  struct Setting {
    double momentum = 0;
    double rate_factor = 1;
    friend bool operator==(const Setting&, const Setting&) = default;
  };

  // Notes a push that is about to be applied, `staleness` updates after the version that its
  // gradient was computed on.
  void ObservePush(double staleness);

  // The setting for the next update. Called once per update, after ObservePush for its pushes.
  // Before the first push with a known staleness, groups are taken to be equally fast. Nothing
  // without a target.
  std::optional<Setting> BeginUpdate(const Update& update);

  const AsynchronyEstimates& estimates() const { return estimates_; }
  // Running mean over pushes; 0 before the first.
  double staleness() const { return estimates_.staleness; }
  double implicit_momentum() const { return ImplicitMomentum(staleness()); }
  // Of the latest update that this governor has seen; before it the target; 0 without a target.
  double explicit_momentum() const { return momentum_.value_or(target_.value_or(0)); }
  std::optional<double> target() const { return target_; }

  // Updates in a row, up to now, for which asynchrony alone added more than the target.
  uint64_t updates_above_target() const { return estimates_.updates_above_target; }
  bool cannot_hold() const { return updates_above_target() >= kUpdatesAboveTargetMax; }

 private:
  std::optional<double> target_;
  std::optional<double> momentum_;
  AsynchronyEstimates estimates_;
};

// Merges the report `from` into `into`, both about the same table; means are weighted by updates.
void MergeAsynchrony(const proto::TableAsynchrony& from, proto::TableAsynchrony& into);

// Reports of several shards, loops or servers, by table.
using AsynchronyByTable = absl::btree_map<uint32_t, proto::TableAsynchrony>;
void AddAsynchrony(const proto::TableAsynchrony& report, AsynchronyByTable& tables);

// A new contract for a table, with the reason for the event trail.
struct ContractChange {
  Contract contract;
  std::string evidence;
};

// The remedy for a table whose momentum cannot be held at its target by lowering the explicit one:
// one update per round of all groups, buffered. Called with the newest report of each server about
// the table. Nothing unless pushes are applied on arrival, the momentum is governed, and every
// server that applies updates has reported so for kUpdatesAboveTargetMax of them in a row. Pure.
std::optional<ContractChange> FallBackToBuffered(const Contract& contract,
                                                 std::span<const proto::TableAsynchrony> reports);

}  // namespace covey
