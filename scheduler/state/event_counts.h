// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "scheduler/state/event.h"

namespace covey::scheduler {

// The decisions of which an operator wants to know how often they happen.
enum class CountedEvent {
  kNodeRegistered,
  kNodeLeft,
  kNodeDied,
  kGroupFormed,
  kGroupRecovered,
  kGroupsPlanned,
  kStragglerNoticed,
  kSharesChanged,
  kMinimumMembersChanged,
  kWorkerMoved,
  kWorkerEvicted,
  kProducerQuarantined,
  kTableCreated,
  kTableDropped,
  kContractChanged,
  kSnapshotCompleted,
  kSnapshotFailed,
  kFlushFellBehind,
  // The following count shards.
  kHeadReplaced,
  kReplicaUnfit,
  kShardRestored,
  kShardReinitialized,
  kShardLost,
};
inline constexpr size_t kCountedEvents = static_cast<size_t>(CountedEvent::kShardLost) + 1;

// "node_died". Pure.
absl::string_view CountedEventName(CountedEvent event);

// How often each has happened since this scheduler leads. A value.
class EventCounts {
 public:
  void Add(const Event& event);
  uint64_t Of(CountedEvent event) const { return counts_[static_cast<size_t>(event)]; }

 private:
  std::array<uint64_t, kCountedEvents> counts_ = {};
};

}  // namespace covey::scheduler
