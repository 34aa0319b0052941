// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "proto/view.pb.h"

namespace covey::scheduler {

// The scheduler's decisions as values: one struct for each kind of decision, with its evidence.
// Machines add events to a Transaction; event.cc alone turns them into sentences. Nodes are given
// by the name that users know ("worker-1"). Pure.

// Nodes.
struct NodeRegistered {
  std::string description = {};
  proto::Role role = proto::ROLE_UNSPECIFIED;
  NodeId replaces = {};  // 0 = it replaces no departed node
};
struct NodeLeft {
  std::string description = {};
  std::string reason = {};  // empty = none given
};
struct NodeDied {
  std::string description = {};
  std::string evidence = {};
};
struct DrainRequested {
  std::string node = {};
  std::string why = {};
};
struct DrainCancelled {
  std::string node = {};
  std::string why = {};
};
// All servers leave; `node` is the last of them.
struct JobCloses {
  std::string node = {};
};
// A server stays after all.
struct JobStaysOpen {
  std::string node = {};
};
struct JobScaled {
  std::optional<uint32_t> servers = {};
  std::optional<uint32_t> workers = {};
  std::string why = {};
  std::vector<std::string> draining = {};
};

// Workers whose labels name no rack have got one, by what they measured.
struct RacksMeasured {
  std::vector<std::vector<std::string>> racks = {};  // names of workers
  // Typical round trips of a message, in one rack and between two.
  absl::Duration inside = {};
  absl::Duration between = {};
  size_t bytes = 0;  // of that message
};

// Groups of workers.
struct FirstGroupsFormed {
  int groups = 0;
  // JobSpec::plans_groups.
  bool automatic = false;
};
struct LateGroupFormed {
  GroupId group = {};
  std::vector<std::string> members = {};
  uint64_t first_step = 0;
};
struct GroupGrew {
  GroupId group = {};
  std::vector<std::string> joined = {};
  uint64_t generation = 0;
  int members = 0;
};
// A member has died; the others repeat their step.
struct GroupRecovers {
  GroupId group = {};
  std::string dead = {};
  uint64_t generation = 0;
  int members = 0;
};
struct GroupContinuesWithoutLeavers {
  GroupId group = {};
  std::vector<std::string> left = {};
  absl::Duration ago = {};
  uint64_t generation = 0;
};
struct GroupContinuesWithoutDraining {
  GroupId group = {};
  std::string draining = {};
  uint64_t generation = 0;
};
// No member is left, or only some that have not met the others yet.
struct GroupEnded {
  GroupId group = {};
};
// Automatic groups have changed their members.
struct GroupsPlanned {
  size_t groups = 0;
  // Workers that were in another group before, and that were in none.
  size_t moved = 0;
  size_t placed = 0;
  std::string reason = {};
};
// What the newest plan has brought: samples per second of all groups.
struct PlanMeasured {
  size_t groups = 0;
  double before = 0;
  double measured = 0;
  // Measured before, times the change that was predicted.
  double predicted = 0;
};
struct WorkerStandsBy {
  std::string worker = {};
};

// Stragglers.
struct StragglerNoticed {
  std::string evidence = {};
};
struct SharesChanged {
  GroupId group = {};
  std::vector<uint32_t> shares = {};  // empty = even
  std::string evidence = {};
};
struct MinimumMembersChanged {
  GroupId group = {};
  uint32_t minimum = 0;  // 0 = all
  int members = 0;
  absl::Duration grace = {};
  std::string evidence = {};
};
struct WorkerMoved {
  std::string worker = {};
  GroupId from = {};  // 0 = it had been evicted
  GroupId to = {};    // 0 = it is placed like a late one
  uint64_t generation = 0;
  std::string evidence = {};
};
struct WorkerEvicted {
  std::string worker = {};
  GroupId from = {};
  uint64_t generation = 0;  // 0 = the group has ended
  std::string evidence = {};
};

// Producers of pushes: "group-3", "client-0".
struct ProducerQuarantined {
  std::string producer = {};
  std::string why = {};
};
struct ProducerReleased {
  std::string producer = {};
  std::string why = {};
};
// The producers have ended.
struct QuarantinesEnded {
  std::vector<std::string> producers = {};
};

// Tables.
struct TableCreated {
  std::string name = {};
  TableId table = {};
  uint64_t elements = 0;
  uint64_t shards = 0;
  int replicas = 0;
  // The folder of the snapshot with whose values it begins; empty = with its initializer's.
  std::string initial_values = {};
};
// A table has momentum of its own under a contract whose asynchrony adds some.
struct MomentumAddsUp {
  std::string name = {};
  std::string contract = {};
  double momentum = 0;
};
// Tables of a snapshot are being made in this job.
struct RestoreBegun {
  std::string snapshot = {};
  std::vector<std::string> tables = {};
};
struct RestoreEnded {
  std::string snapshot = {};
  std::vector<std::string> tables = {};
  std::string failure = {};  // empty = they are ready; otherwise they are dropped again
};
// A node gives tables their initial values, and has given them.
struct InitializationBegun {
  std::vector<std::string> tables = {};
  std::string node = {};
};
struct TablesInitialized {
  std::vector<std::string> tables = {};
  std::string node = {};
};
// The call that gave them has ended without success.
struct InitializationGivenUp {
  std::vector<std::string> tables = {};
  std::string node = {};
};
struct TableDropped {
  std::string name = {};
  TableId table = {};
};
struct ContractChanged {
  std::string name = {};
  TableId table = {};
  std::string from = {};
  std::string to = {};
  std::string why = {};
};

// Snapshots.
struct SnapshotOrdered {
  uint64_t id = 0;
  std::map<GroupId, uint64_t> steps = {};
  std::string why = {};
  bool is_flush = false;
};
// All groups have finished the ordered steps.
struct SnapshotPassed {
  uint64_t id = 0;
};
struct SnapshotCompleted {
  uint64_t id = 0;
  std::string folder = {};
  uint64_t bytes = 0;         // of its own files
  uint64_t reused_bytes = 0;  // of earlier snapshots
  absl::Duration took = {};
  bool is_flush = false;
};
// The state at the cut of a flush is not in the store when the next cut was to be.
struct FlushFallsBehind {
  absl::Duration every = {};
  uint64_t updates_at_risk = 0;
  absl::Duration age = {};
  std::string waits_for = {};
};
struct SnapshotFailed {
  uint64_t id = 0;
  std::string reason = {};
  bool again = false;
};
struct TablesRestored {
  std::string snapshot = {};
  int tables = 0;
};

// Chains. Shards with the same change are counted together.
struct ShardChange {
  enum class Kind {
    kJoining,            // a replica joins on `node`
    kFull,               // the replica on `node` has the whole content
    kMoving,             // a replica moves from `from` to `node`
    kMoveCancelled,      // the replica on `node` is not needed after all
    kMovedAway,          // the replica on `node` is no longer in the chain
    kDepartedMember,     // `node` has departed
    kPromoted,           // `node` heads the chain now
    kNoFullReplica,      // only the departed `node` had the whole content
    kAwaitingLeaseEnd,   // the departed `node` may still serve
    kAwaitingReturn,     // a server of the rank of the departed `node` may come back
    kReinitializedLost,  // on `node`, since the departed `from` had the only content
    kReinitializedCorrupt,
    kRestoredLost,  // as the two before, from the newest snapshot
    kUnreachable,
    kUnfit,
  };
  Kind kind;
  std::string node = {};
  std::string from = {};

  friend auto operator<=>(const ShardChange&, const ShardChange&) = default;
};
struct ShardsReconciled {
  std::map<ShardChange, uint64_t> shards = {};
};
// No program and no snapshot can give the shard's values again, so the scheduler stops the job.
struct ShardLostForGood {
  std::string table = {};
  ShardIndex shard = {};
  std::string reason = {};
};
struct ReplicaReportsTaken {};

// Barriers and training data.
struct BarrierReleased {
  std::string name = {};
  uint32_t participants = 0;
};
struct DatasetAdded {
  std::string name = {};
  uint64_t passes = 0;
  uint64_t examples = 0;
  NodeId first_asked_by = {};
};
struct ItemsHandedOut {
  std::string dataset = {};
};
struct ExamplesFinished {
  std::string dataset = {};
  uint64_t examples = 0;
};
struct PassesFinished {
  std::string dataset = {};
  uint64_t finished = 0;
  uint64_t passes = 0;
};
struct ExamplesReclaimed {
  std::string dataset = {};
  uint64_t examples = 0;
  NodeId from = {};
};
// Handed out before a restart of the scheduler, and not reported since.
struct UnreportedExamplesExpired {
  std::string dataset = {};
  uint64_t examples = 0;
};

using Event = std::variant<
    NodeRegistered, NodeLeft, NodeDied, DrainRequested, DrainCancelled, JobCloses, JobStaysOpen,
    JobScaled, RacksMeasured, FirstGroupsFormed, LateGroupFormed, GroupGrew, GroupRecovers,
    GroupContinuesWithoutLeavers, GroupContinuesWithoutDraining, GroupEnded, GroupsPlanned,
    PlanMeasured, WorkerStandsBy, StragglerNoticed, SharesChanged, MinimumMembersChanged,
    WorkerMoved, WorkerEvicted, ProducerQuarantined, ProducerReleased, QuarantinesEnded,
    TableCreated, MomentumAddsUp, RestoreBegun, RestoreEnded, InitializationBegun,
    TablesInitialized, InitializationGivenUp, ShardLostForGood, TableDropped, ContractChanged,
    SnapshotOrdered, SnapshotPassed, SnapshotCompleted, FlushFallsBehind, SnapshotFailed,
    TablesRestored, ShardsReconciled, ReplicaReportsTaken, BarrierReleased, DatasetAdded,
    ItemsHandedOut, ExamplesFinished, PassesFinished, ExamplesReclaimed, UnreportedExamplesExpired>;

// One sentence without its full stop.
std::string Describe(const Event& event);
// The sentences, joined by "; ".
std::string Describe(const std::vector<Event>& events);

// What it is about: one of the words of proto::Event.kinds, such as "node".
absl::string_view KindOf(const Event& event);

// Routine events are frequent: they are in the log's record, but not in the event trail.
bool IsRoutine(const Event& event);
// Whether shards may have to be placed differently after this event.
bool AffectsPlacement(const Event& event);

}  // namespace covey::scheduler
