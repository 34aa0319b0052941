// SPDX-License-Identifier: Apache-2.0
#include "scheduler/state/event_counts.h"

#include <optional>
#include <type_traits>
#include <variant>

namespace covey::scheduler {
namespace {

// Nothing for those that are not counted.
template <typename T>
constexpr std::optional<CountedEvent> KindOf() {
  if (std::is_same_v<T, NodeRegistered>) return CountedEvent::kNodeRegistered;
  if (std::is_same_v<T, NodeLeft>) return CountedEvent::kNodeLeft;
  if (std::is_same_v<T, NodeDied>) return CountedEvent::kNodeDied;
  if (std::is_same_v<T, LateGroupFormed>) return CountedEvent::kGroupFormed;
  if (std::is_same_v<T, GroupRecovers>) return CountedEvent::kGroupRecovered;
  if (std::is_same_v<T, GroupsPlanned>) return CountedEvent::kGroupsPlanned;
  if (std::is_same_v<T, StragglerNoticed>) return CountedEvent::kStragglerNoticed;
  if (std::is_same_v<T, SharesChanged>) return CountedEvent::kSharesChanged;
  if (std::is_same_v<T, MinimumMembersChanged>) return CountedEvent::kMinimumMembersChanged;
  if (std::is_same_v<T, WorkerMoved>) return CountedEvent::kWorkerMoved;
  if (std::is_same_v<T, WorkerEvicted>) return CountedEvent::kWorkerEvicted;
  if (std::is_same_v<T, ProducerQuarantined>) return CountedEvent::kProducerQuarantined;
  if (std::is_same_v<T, TableCreated>) return CountedEvent::kTableCreated;
  if (std::is_same_v<T, TableDropped>) return CountedEvent::kTableDropped;
  if (std::is_same_v<T, ContractChanged>) return CountedEvent::kContractChanged;
  if (std::is_same_v<T, SnapshotCompleted>) return CountedEvent::kSnapshotCompleted;
  if (std::is_same_v<T, SnapshotFailed>) return CountedEvent::kSnapshotFailed;
  if (std::is_same_v<T, FlushFallsBehind>) return CountedEvent::kFlushFellBehind;
  if (std::is_same_v<T, ShardLostForGood>) return CountedEvent::kShardLost;
  return std::nullopt;
}

std::optional<CountedEvent> KindOf(ShardChange::Kind change) {
  switch (change) {
    case ShardChange::Kind::kPromoted:
      return CountedEvent::kHeadReplaced;
    case ShardChange::Kind::kUnfit:
      return CountedEvent::kReplicaUnfit;
    case ShardChange::Kind::kRestoredLost:
      return CountedEvent::kShardRestored;
    case ShardChange::Kind::kReinitializedLost:
    case ShardChange::Kind::kReinitializedCorrupt:
      return CountedEvent::kShardReinitialized;
    default:
      return std::nullopt;
  }
}

}  // namespace

absl::string_view CountedEventName(CountedEvent event) {
  switch (event) {
    case CountedEvent::kNodeRegistered:
      return "node_registered";
    case CountedEvent::kNodeLeft:
      return "node_left";
    case CountedEvent::kNodeDied:
      return "node_died";
    case CountedEvent::kGroupFormed:
      return "group_formed";
    case CountedEvent::kGroupRecovered:
      return "group_recovered";
    case CountedEvent::kGroupsPlanned:
      return "groups_planned";
    case CountedEvent::kStragglerNoticed:
      return "straggler_noticed";
    case CountedEvent::kSharesChanged:
      return "shares_changed";
    case CountedEvent::kMinimumMembersChanged:
      return "minimum_members_changed";
    case CountedEvent::kWorkerMoved:
      return "worker_moved";
    case CountedEvent::kWorkerEvicted:
      return "worker_evicted";
    case CountedEvent::kProducerQuarantined:
      return "producer_quarantined";
    case CountedEvent::kTableCreated:
      return "table_created";
    case CountedEvent::kTableDropped:
      return "table_dropped";
    case CountedEvent::kContractChanged:
      return "contract_changed";
    case CountedEvent::kSnapshotCompleted:
      return "snapshot_completed";
    case CountedEvent::kSnapshotFailed:
      return "snapshot_failed";
    case CountedEvent::kFlushFellBehind:
      return "flush_fell_behind";
    case CountedEvent::kHeadReplaced:
      return "head_replaced";
    case CountedEvent::kReplicaUnfit:
      return "replica_unfit";
    case CountedEvent::kShardRestored:
      return "shard_restored";
    case CountedEvent::kShardReinitialized:
      return "shard_reinitialized";
    case CountedEvent::kShardLost:
      return "shard_lost";
  }
  return "unknown";
}

void EventCounts::Add(const Event& event) {
  const auto count = [this](std::optional<CountedEvent> kind, uint64_t times) {
    if (kind) counts_[static_cast<size_t>(*kind)] += times;
  };
  std::visit(
      [&count](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, ShardsReconciled>) {
          for (const auto& [change, shards] : value.shards) count(KindOf(change.kind), shards);
        } else if constexpr (std::is_same_v<T, FirstGroupsFormed>) {
          count(CountedEvent::kGroupFormed, static_cast<uint64_t>(value.groups));
        } else {
          count(KindOf<T>(), 1);
        }
      },
      event);
}

}  // namespace covey::scheduler
