// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/cluster/live_group.h"
#include "proto/table.pb.h"
#include "proto/view.pb.h"

namespace covey {

// How groups relate through a table: pure policy, shared by clients, servers and the simulator.
// When pushes become updates: update_gate.h. When reads are answered: read_gate.h. Immutable value.
// A kind ignores the fields that do not name it.
struct Contract {
  enum class Kind { kBsp, kSsp, kAsync, kBuffered, kLocal };
  Kind kind = Kind::kBuffered;
  // kSsp: how many steps a group may run ahead of the slowest live one.
  uint64_t staleness = 0;
  // kBuffered: arrivals per update; 0 = number of live groups.
  uint64_t buffer = 0;
  // kBuffered: a push whose base version is this many updates old, or older, is not applied. 0 =
  // every push is.
  uint64_t staleness_cut = 0;
  // kLocal: inner steps per outer update; at least 1.
  uint64_t local_steps = 1;
  // kLocal: number of groups whose changes make an update; 0 = all live ones. With fewer than all,
  // the round waits another `grace` for the others.
  uint64_t quorum = 0;
  absl::Duration grace = absl::ZeroDuration();
  // kLocal: steps that a group takes before it adopts the outer update.
  uint64_t overlap_steps = 0;

  friend bool operator==(const Contract&, const Contract&) = default;

  // Step that every live group must have reached before the read of a worker that has finished
  // `step` is answered; nothing when the contract does not gate. bsp: step; ssp(s): step - s.
  // Equation: Ho et al. 2013, "a worker at clock c sees all updates of clock <= c - s - 1", with
  // our steps counted from 1.
  std::optional<Step> RequiredStep(Step step) const;

  // Round that must have become an update before the read of a worker that has finished `round` is
  // answered; nothing unless kLocal. Quorum and grace decide when that is; with overlap the worker
  // asks early and waits late.
  std::optional<Step> RequiredRound(Step round) const;

  // The groups as this contract counts them: under kLocal each from its first whole round on,
  // because there the step of a push is its round.
  std::vector<LiveGroup> WaitedFor(std::vector<LiveGroup> live) const;

  // Whether each push becomes an update of its own when it arrives (kAsync, kSsp).
  bool AppliesOnArrival() const { return kind == Kind::kAsync || kind == Kind::kSsp; }

  // Whether a push computed on version `base` is acknowledged but not applied by a shard that is at
  // version `present`. `base` 0 = unknown, which is never too stale.
  bool Discards(Version base, Version present) const;

  // Whether a table may go from this contract to `other` while it is in use. INVALID_ARGUMENT: a
  // switch between kLocal and the other kinds, because a change over many steps is not a gradient;
  // or to rounds of another length or overlap, because members would not agree on the end of a
  // round.
  absl::Status CheckSwitchTo(const Contract& other) const;

  // INVALID_ARGUMENT: a field is out of the range of table.proto; names it.
  absl::Status Validate() const;
};

// "bsp", "ssp:2", "async", "buffered", "buffered:4", "buffered:4,cut=8", "local:16",
// "local:16,quorum=2,grace=500ms,overlap=4". INVALID_ARGUMENT: anything else; the message lists the
// known forms.
absl::StatusOr<Contract> ParseContract(absl::string_view text);
std::string ContractName(const Contract& contract);

// Fields that the kind does not name are left at their default, so that equal contracts are equal.
// INVALID_ARGUMENT: the kind is unknown here, or Validate fails.
absl::StatusOr<Contract> ContractFromProto(const proto::Contract& contract);
proto::Contract ContractToProto(const Contract& contract);
// The contract in force: the spec's, or the one that the table was switched to.
absl::StatusOr<Contract> ContractInForce(const proto::Table& table);

}  // namespace covey
