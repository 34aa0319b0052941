// SPDX-License-Identifier: Apache-2.0
#include "scheduler/state/event.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/plural.h"
#include "scheduler/state/view_lookup.h"

namespace covey::scheduler {
namespace {

std::string Because(const std::string& evidence) {
  return evidence.empty() ? "" : absl::StrCat(": ", evidence);
}

std::string Named(GroupId group) { return absl::StrCat("group ", group.value()); }

std::string Named(const std::string& name, TableId table) {
  return absl::StrCat("table '", name, "' (", table.value(), ")");
}

std::string Text(const NodeRegistered& e) {
  return absl::StrCat(
      e.description, " registered",
      e.replaces == NodeId() ? "" : absl::StrCat(" in place of node ", e.replaces.value()));
}

std::string Text(const NodeLeft& e) {
  return absl::StrCat(e.description, " left", Because(e.reason));
}

std::string Text(const NodeDied& e) {
  return absl::StrCat(e.description, " dead", Because(e.evidence));
}

std::string Text(const JobCloses& e) {
  return absl::StrCat("the job closes with ", e.node,
                      ": no server stays, so its state is kept in a snapshot");
}

std::string Text(const JobStaysOpen& e) {
  return absl::StrCat("the job does not close, because ", e.node, " stays");
}

std::string Text(const DrainRequested& e) { return absl::StrCat(e.node, " drains: ", e.why); }

std::string Text(const DrainCancelled& e) {
  return absl::StrCat(e.node, " stays after all: ", e.why);
}

std::string Text(const JobScaled& e) {
  std::vector<std::string> wanted;
  if (e.servers) wanted.push_back(Plural(*e.servers, "server"));
  if (e.workers) wanted.push_back(Plural(*e.workers, "worker"));
  return absl::StrCat(
      "wanted: ", absl::StrJoin(wanted, " and "), ", ", e.why,
      e.draining.empty() ? "" : absl::StrCat("; ", ListNames(e.draining), " to drain"));
}

std::string Text(const RacksMeasured& e) {
  const auto names = [](std::string* out, const std::vector<std::string>& rack) {
    out->append(ListNames(rack));
  };
  return absl::StrFormat(
      "%s measured: %s; %.2g ms inside, %.2g ms between%s", Plural(e.racks.size(), "rack"),
      absl::StrJoin(e.racks, " | ", names), absl::ToDoubleMilliseconds(e.inside),
      absl::ToDoubleMilliseconds(e.between),
      e.bytes == 0 ? "" : absl::StrFormat(", with %.3g MB", static_cast<double>(e.bytes) / 1e6));
}

std::string Text(const FirstGroupsFormed& e) {
  return absl::StrCat("all workers have registered: ", Plural(e.groups, "group"), " formed",
                      e.automatic ? "; the scheduler plans others once it has measured the speed "
                                    "of the workers"
                                  : " by labels");
}

std::string Text(const LateGroupFormed& e) {
  return absl::StrCat(Named(e.group), " formed of ", ListNames(e.members),
                      ", waited for from step ", e.first_step, " on");
}

std::string Text(const GroupGrew& e) {
  return absl::StrCat(Named(e.group), " takes in ", ListNames(e.joined), " as generation ",
                      e.generation, " of ", Plural(e.members, "member"));
}

std::string Text(const GroupRecovers& e) {
  return absl::StrCat(Named(e.group), " goes on at once without ", e.dead, " as generation ",
                      e.generation, " of ", Plural(e.members, "member"));
}

std::string Text(const GroupContinuesWithoutLeavers& e) {
  return absl::StrCat(Named(e.group), " goes on without ", ListNames(e.left), ", left ",
                      absl::FormatDuration(e.ago), " ago, as generation ", e.generation);
}

std::string Text(const GroupContinuesWithoutDraining& e) {
  return absl::StrCat(Named(e.group), " goes on without ", e.draining, " as generation ",
                      e.generation);
}

std::string Text(const GroupEnded& e) {
  return absl::StrCat(Named(e.group),
                      " ends: no member is left that knows how far the group has come");
}

std::string Text(const GroupsPlanned& e) {
  std::string text =
      absl::StrCat(Plural(e.groups, "group"), " planned, ", Plural(e.moved, "worker"), " moved");
  if (e.placed > 0) absl::StrAppend(&text, ", ", e.placed, " placed");
  return absl::StrCat(text, ": ", e.reason);
}

std::string Text(const PlanMeasured& e) {
  return absl::StrFormat(
      "the plan of %s reached %.4g samples/s; %.4g were predicted (%+.0f %%); the groups before it "
      "made %.4g",
      Plural(e.groups, "group"), e.measured, e.predicted, (e.measured / e.predicted - 1) * 100,
      e.before);
}

std::string Text(const WorkerStandsBy& e) { return absl::StrCat(e.worker, " stands by"); }

std::string Text(const StragglerNoticed& e) { return e.evidence; }

std::string Text(const SharesChanged& e) {
  return absl::StrCat(Named(e.group), " divides its samples ",
                      e.shares.empty() ? "evenly again" : absl::StrJoin(e.shares, ":"),
                      Because(e.evidence));
}

std::string Text(const MinimumMembersChanged& e) {
  return absl::StrCat(Named(e.group), " waits for ",
                      e.minimum == 0
                          ? "all members again"
                          : absl::StrCat(e.minimum, " of ", e.members, " members and then ",
                                         absl::FormatDuration(e.grace)),
                      Because(e.evidence));
}

std::string Text(const WorkerMoved& e) {
  return absl::StrCat(
      e.worker, " leaves ", e.from == GroupId() ? "standby" : Named(e.from),
      e.to == GroupId() ? ""
                        : absl::StrCat(" for ", Named(e.to), ", now of generation ", e.generation),
      Because(e.evidence));
}

std::string Text(const WorkerEvicted& e) {
  return absl::StrCat(
      e.worker, " evicted from ", Named(e.from),
      e.generation == 0 ? "" : absl::StrCat(", which goes on as generation ", e.generation),
      Because(e.evidence));
}

std::string Text(const ProducerQuarantined& e) {
  return absl::StrCat(e.producer, " quarantined", Because(e.why));
}

std::string Text(const ProducerReleased& e) {
  return absl::StrCat(e.producer, " released from quarantine", Because(e.why));
}

std::string Text(const QuarantinesEnded& e) {
  return absl::StrCat(ListNames(e.producers), e.producers.size() == 1 ? " has" : " have",
                      " ended in quarantine");
}

std::string Text(const TableCreated& e) {
  return absl::StrCat(
      "table '", e.name, "' created as table ", e.table.value(), ": ", e.elements, " elements in ",
      e.shards, " shards on ", e.replicas, " servers each",
      e.initial_values.empty() ? "" : absl::StrCat(", with the values of ", e.initial_values));
}

std::string Text(const MomentumAddsUp& e) {
  return absl::StrCat(
      "table '", e.name, "' has a momentum of ", e.momentum, " under ", e.contract,
      ", to which asynchrony adds about 1 - 1/G with G groups, so that training may diverge: set "
      "asynchrony.automatic_momentum of the table, or lower its momentum");
}

std::string Tables(const std::vector<std::string>& names) {
  return absl::StrCat(names.size() == 1 ? "table '" : "tables '", absl::StrJoin(names, "', '"),
                      "'");
}

std::string Text(const RestoreBegun& e) {
  return absl::StrCat("restoring ", Tables(e.tables), " from ", e.snapshot);
}

std::string Text(const RestoreEnded& e) {
  if (e.failure.empty()) return absl::StrCat(Tables(e.tables), " restored from ", e.snapshot);
  return absl::StrCat(Tables(e.tables), " not restored from ", e.snapshot,
                      ", and dropped again: ", e.failure);
}

std::string Text(const InitializationBegun& e) {
  return absl::StrCat(Tables(e.tables), e.tables.size() == 1 ? " takes its" : " take their",
                      " initial values from ", e.node);
}

std::string Text(const TablesInitialized& e) {
  return absl::StrCat(Tables(e.tables), e.tables.size() == 1 ? " has its" : " have their",
                      " initial values, from ", e.node);
}

std::string Text(const InitializationGivenUp& e) {
  return absl::StrCat(e.node, " no longer gives the initial values of ", Tables(e.tables));
}

std::string Text(const ShardLostForGood& e) {
  return absl::StrCat("table '", e.table, "' shard ", e.shard.value(), " is lost for good",
                      Because(e.reason));
}

std::string Text(const TableDropped& e) { return absl::StrCat(Named(e.name, e.table), " dropped"); }

std::string Text(const ContractChanged& e) {
  return absl::StrCat(Named(e.name, e.table), " goes from ", e.from, " to ", e.to, Because(e.why));
}

std::string Text(const SnapshotOrdered& e) {
  std::vector<std::string> steps;
  for (const auto& [group, step] : e.steps) {
    steps.push_back(absl::StrCat(Named(group), " after step ", step));
  }
  return absl::StrCat("snapshot ", e.id, " ordered, ", e.why, ": ",
                      steps.empty() ? "no group trains" : absl::StrJoin(steps, ", "));
}

std::string Text(const SnapshotPassed& e) {
  return absl::StrCat("all groups have passed the steps of snapshot ", e.id);
}

std::string Text(const SnapshotCompleted& e) {
  return absl::StrCat(
      "snapshot ", e.id, " is complete: ", e.bytes, " bytes in ", e.folder,
      e.reused_bytes == 0 ? "" : absl::StrCat(", and ", e.reused_bytes, " in earlier snapshots,"),
      " after ", absl::FormatDuration(e.took));
}

std::string Text(const FlushFallsBehind& e) {
  return absl::StrCat("the flush is behind its interval of ", absl::FormatDuration(e.every), ": ",
                      e.updates_at_risk, " updates of the last ",
                      absl::FormatDuration(absl::Trunc(e.age, absl::Milliseconds(100))),
                      " are in no snapshot yet; ", e.waits_for,
                      ". A longer interval, or a faster store, would hold");
}

std::string Text(const SnapshotFailed& e) {
  return absl::StrCat("snapshot ", e.id, " failed", e.again ? ", to be tried again" : "", ": ",
                      e.reason);
}

std::string Text(const TablesRestored& e) {
  return absl::StrCat(Plural(e.tables, "table"), e.tables == 1 ? " continues " : " continue ",
                      e.snapshot, "; updates after it are gone");
}

std::string Text(const ShardChange& change) {
  switch (change.kind) {
    case ShardChange::Kind::kJoining:
      return absl::StrCat("joining on ", change.node);
    case ShardChange::Kind::kFull:
      return absl::StrCat("full on ", change.node);
    case ShardChange::Kind::kMoving:
      return absl::StrCat("moving from ", change.from, " to ", change.node);
    case ShardChange::Kind::kMoveCancelled:
      return absl::StrCat("not moved after all to ", change.node);
    case ShardChange::Kind::kMovedAway:
      return absl::StrCat("moved away from ", change.node);
    case ShardChange::Kind::kDepartedMember:
      return absl::StrCat("no longer on ", change.node);
    case ShardChange::Kind::kPromoted:
      return absl::StrCat("promoted on ", change.node);
    case ShardChange::Kind::kNoFullReplica:
      return absl::StrCat("without a full replica after ", change.node);
    case ShardChange::Kind::kAwaitingLeaseEnd:
      return absl::StrCat("waiting for the end of the lease of ", change.node);
    case ShardChange::Kind::kAwaitingReturn:
      return absl::StrCat("waiting for another ", change.node);
    case ShardChange::Kind::kReinitializedLost:
      return absl::StrCat("lost with ", change.from, ", re-initialized on ", change.node);
    case ShardChange::Kind::kReinitializedCorrupt:
      return absl::StrCat("lost, their only copy on ", change.from,
                          " being unfit, re-initialized on ", change.node);
    case ShardChange::Kind::kRestoredLost:
      return absl::StrCat("lost with ", change.from, ", restored on ", change.node,
                          " from the newest snapshot");
    case ShardChange::Kind::kUnreachable:
      return absl::StrCat("unreachable on ", change.node);
    case ShardChange::Kind::kUnfit:
      return absl::StrCat("unfit on ", change.node);
  }
  return "";
}

std::string Text(const ShardsReconciled& e) {
  return absl::StrCat("shards: ",
                      absl::StrJoin(e.shards, ", ", [](std::string* out, const auto& entry) {
                        absl::StrAppend(out, entry.second, " ", Text(entry.first));
                      }));
}

std::string Text(const ReplicaReportsTaken&) { return "reports on replicas"; }

std::string Text(const BarrierReleased& e) {
  return absl::StrCat("barrier '", e.name, "': all ", e.participants, " arrived");
}

std::string Text(const DatasetAdded& e) {
  return absl::StrCat("work '", e.name, "': ", e.passes, " passes over ", e.examples,
                      " examples, first asked for by node ", e.first_asked_by.value());
}

std::string Text(const ItemsHandedOut& e) {
  return absl::StrCat("work '", e.dataset, "': items given");
}

std::string Text(const ExamplesFinished& e) {
  return absl::StrCat("work '", e.dataset, "': ", e.examples, " examples finished");
}

std::string Text(const PassesFinished& e) {
  return absl::StrCat("work '", e.dataset, "': ", e.finished, " of ", e.passes, " passes finished");
}

std::string Text(const ExamplesReclaimed& e) {
  return absl::StrCat("work '", e.dataset, "': ", e.examples, " examples of node ", e.from.value(),
                      " are given to others");
}

std::string Text(const UnreportedExamplesExpired& e) {
  return absl::StrCat("work '", e.dataset, "': ", e.examples,
                      " examples that were given before the scheduler's restart are given again at "
                      "the end of their pass, unless a worker reports them by then");
}

constexpr absl::string_view kNode = "node";
constexpr absl::string_view kGroup = "group";
constexpr absl::string_view kStraggler = "straggler";
constexpr absl::string_view kTable = "table";
constexpr absl::string_view kShards = "shards";
constexpr absl::string_view kSnapshot = "snapshot";
constexpr absl::string_view kProducer = "producer";
constexpr absl::string_view kWork = "work";
constexpr absl::string_view kJob = "job";

absl::string_view Kind(const NodeRegistered&) { return kNode; }
absl::string_view Kind(const NodeLeft&) { return kNode; }
absl::string_view Kind(const NodeDied&) { return kNode; }
absl::string_view Kind(const DrainRequested&) { return kNode; }
absl::string_view Kind(const DrainCancelled&) { return kNode; }
absl::string_view Kind(const GroupsPlanned&) { return kGroup; }
absl::string_view Kind(const PlanMeasured&) { return kGroup; }
absl::string_view Kind(const WorkerStandsBy&) { return kNode; }
absl::string_view Kind(const JobCloses&) { return kJob; }
absl::string_view Kind(const JobStaysOpen&) { return kJob; }
absl::string_view Kind(const JobScaled&) { return kJob; }
absl::string_view Kind(const RacksMeasured&) { return kNode; }
absl::string_view Kind(const FirstGroupsFormed&) { return kGroup; }
absl::string_view Kind(const LateGroupFormed&) { return kGroup; }
absl::string_view Kind(const GroupGrew&) { return kGroup; }
absl::string_view Kind(const GroupRecovers&) { return kGroup; }
absl::string_view Kind(const GroupContinuesWithoutLeavers&) { return kGroup; }
absl::string_view Kind(const GroupContinuesWithoutDraining&) { return kGroup; }
absl::string_view Kind(const GroupEnded&) { return kGroup; }
absl::string_view Kind(const StragglerNoticed&) { return kStraggler; }
absl::string_view Kind(const SharesChanged&) { return kStraggler; }
absl::string_view Kind(const MinimumMembersChanged&) { return kStraggler; }
absl::string_view Kind(const WorkerMoved&) { return kStraggler; }
absl::string_view Kind(const WorkerEvicted&) { return kStraggler; }
absl::string_view Kind(const ProducerQuarantined&) { return kProducer; }
absl::string_view Kind(const ProducerReleased&) { return kProducer; }
absl::string_view Kind(const QuarantinesEnded&) { return kProducer; }
absl::string_view Kind(const TableCreated&) { return kTable; }
absl::string_view Kind(const MomentumAddsUp&) { return kTable; }
absl::string_view Kind(const RestoreBegun&) { return kTable; }
absl::string_view Kind(const RestoreEnded&) { return kTable; }
absl::string_view Kind(const InitializationBegun&) { return kTable; }
absl::string_view Kind(const TablesInitialized&) { return kTable; }
absl::string_view Kind(const InitializationGivenUp&) { return kTable; }
absl::string_view Kind(const TableDropped&) { return kTable; }
absl::string_view Kind(const ContractChanged&) { return kTable; }
absl::string_view Kind(const ShardLostForGood&) { return kShards; }
absl::string_view Kind(const ShardsReconciled&) { return kShards; }
absl::string_view Kind(const ReplicaReportsTaken&) { return kShards; }
absl::string_view Kind(const SnapshotOrdered&) { return kSnapshot; }
absl::string_view Kind(const SnapshotPassed&) { return kSnapshot; }
absl::string_view Kind(const SnapshotCompleted&) { return kSnapshot; }
absl::string_view Kind(const FlushFallsBehind&) { return kSnapshot; }
absl::string_view Kind(const SnapshotFailed&) { return kSnapshot; }
absl::string_view Kind(const TablesRestored&) { return kSnapshot; }
absl::string_view Kind(const BarrierReleased&) { return kWork; }
absl::string_view Kind(const DatasetAdded&) { return kWork; }
absl::string_view Kind(const ItemsHandedOut&) { return kWork; }
absl::string_view Kind(const ExamplesFinished&) { return kWork; }
absl::string_view Kind(const PassesFinished&) { return kWork; }
absl::string_view Kind(const ExamplesReclaimed&) { return kWork; }
absl::string_view Kind(const UnreportedExamplesExpired&) { return kWork; }

}  // namespace

absl::string_view KindOf(const Event& event) {
  return std::visit([](const auto& e) { return Kind(e); }, event);
}

std::string Describe(const Event& event) {
  return std::visit([](const auto& e) { return Text(e); }, event);
}

std::string Describe(const std::vector<Event>& events) {
  return absl::StrJoin(events, "; ", [](std::string* out, const Event& event) {
    absl::StrAppend(out, Describe(event));
  });
}

bool IsRoutine(const Event& event) {
  if (const auto* ordered = std::get_if<SnapshotOrdered>(&event)) return ordered->is_flush;
  if (const auto* completed = std::get_if<SnapshotCompleted>(&event)) return completed->is_flush;
  return std::holds_alternative<ReplicaReportsTaken>(event) ||
         std::holds_alternative<ItemsHandedOut>(event) ||
         std::holds_alternative<ExamplesFinished>(event) ||
         std::holds_alternative<SnapshotPassed>(event);
}

bool AffectsPlacement(const Event& event) {
  if (const auto* registered = std::get_if<NodeRegistered>(&event)) {
    return registered->role == proto::SERVER;
  }
  return std::holds_alternative<NodeLeft>(event) || std::holds_alternative<NodeDied>(event) ||
         std::holds_alternative<DrainRequested>(event) ||
         std::holds_alternative<DrainCancelled>(event) ||
         std::holds_alternative<JobScaled>(event) || std::holds_alternative<TableCreated>(event) ||
         std::holds_alternative<RestoreBegun>(event) ||
         std::holds_alternative<RestoreEnded>(event) ||
         std::holds_alternative<TableDropped>(event) ||
         std::holds_alternative<TablesRestored>(event);
}

}  // namespace covey::scheduler
