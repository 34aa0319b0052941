// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/snapshot/snapshot_workload.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/snapshot/manifest.h"
#include "common/snapshot/shard_entries.h"
#include "common/snapshot/snapshot_reader.h"
#include "common/tensor/codec.h"
#include "server/sparse/sparse_shard.h"
#include "tests/sim/checkers/one_history.h"
#include "tests/sim/checkers/rows_at_cut.h"
#include "tests/sim/checkers/snapshot_cut.h"
#include "tests/sim/checkers/step_rows.h"
#include "tests/sim/checkers/stored_shard.h"
#include "tests/sim/workloads/snapshot/example_truth.h"
#include "tests/sim/workloads/snapshot/snapshot_operator.h"
#include "tests/sim/workloads/snapshot/snapshot_plan.h"
#include "tests/sim/workloads/snapshot/snapshot_progress.h"
#include "tests/sim/workloads/snapshot/snapshot_trainer.h"
#include "tests/sim/workloads/workload_names.h"

namespace covey::sim {
namespace {

constexpr absl::Duration kLookAgain = absl::Milliseconds(200);
// Steps of a group in a fault phase, about.
constexpr double kStepsPerPhase = 60;
constexpr absl::Duration kThinkMin = absl::Milliseconds(200);
// The first job takes as long as it needs for a snapshot, and the next one begins after that.
constexpr absl::Duration kRepair = absl::Seconds(1000);

class SnapshotWorkload : public Workload {
 public:
  SnapshotWorkload(const SnapshotPlan& plan, Random random, Violations& violations);

  std::string name() const override {
    return std::string(plan_.sparse ? kSnapshotSparse : kSnapshot);
  }
  uint32_t groups() const override { return plan_.groups; }
  bool is_elastic() const override { return plan_.elastic; }
  void Adapt(SimConfig& config) const override;
  void SetUp(SimCluster& cluster) override;
  bool Finished() const override;
  void Check() override;
  std::string Report() const override;

 private:
  void OnStored(const proto::StoreRequest& request);
  // Ends the first job when it is time.
  void Look();
  void StartOver();
  // The tables that were restored hold what the snapshot holds.
  void CheckRestored();
  bool HoldsStored(const ReplicaSnapshot& replica, const proto::Shard& shard,
                   const StoredShard& stored, const proto::SnapshotShard& entry) const;
  // The rows of the servers hold the pushes that they should.
  void CheckRows();
  size_t workers_running() const;

  Violations& violations_;
  Random random_;
  const SnapshotPlan plan_;
  SimCluster* cluster_ = nullptr;
  SnapshotProgress progress_;
  ExampleTruth examples_;
  OneHistory one_history_;
  std::optional<SnapshotCut> cut_;
  RowsAtCut rows_at_cut_;
  uint64_t snapshots_ = 0;
  uint64_t logs_ = 0;  // of shards, that snapshots refer to
  uint64_t restored_ = 0;
  std::string continued_;
};

SnapshotWorkload::SnapshotWorkload(const SnapshotPlan& plan, Random random, Violations& violations)
    : violations_(violations),
      random_(random.Split(1)),
      plan_(plan),
      examples_(violations, plan_.examples, plan_.passes, [this] { return cluster_->published(); }),
      one_history_(violations),
      rows_at_cut_(plan_.step_values(), violations) {}

void SnapshotWorkload::Adapt(SimConfig& config) const {
  if (plan_.contract.kind == Contract::Kind::kLocal) config.small_limits = false;
  config.scheduler.store = "store";
  config.scheduler.snapshot_every = plan_.snapshot_every;
  config.scheduler.durability = plan_.durability;
  config.scheduler.snapshots_kept = plan_.snapshots_kept;
  config.scheduler.snapshot_deadline = plan_.snapshot_deadline;
  config.scheduler.contract_fallback = plan_.may_fall_back;
  config.store = plan_.store;
  if (config.quiet) config.store.disk.chance = config.store.restarts = 0;
  config.repair = kRepair;
}

void SnapshotWorkload::SetUp(SimCluster& cluster) {
  cluster_ = &cluster;
  progress_.cluster = &cluster;
  cut_.emplace(
      SnapshotCut::Options{.elements = SnapshotPlan::kElements,
                           .values = plan_.step_values(),
                           .has_common_steps = plan_.contract.kind == Contract::Kind::kBsp ||
                                               plan_.contract.kind == Contract::Kind::kLocal},
      [&cluster](absl::string_view server, uint32_t loop,
                 ShardId shard) -> std::optional<SnapshotCut::Held> {
        const server::Replica* replica = cluster.FindReplica(server, loop, shard);
        if (replica == nullptr || replica->content() == nullptr) return std::nullopt;
        return SnapshotCut::Held{.chain_epoch = replica->chain_epoch(),
                                 .index = replica->content()->index(),
                                 .digest = replica->content()->Digest()};
      },
      violations_);
  progress_.cut = &*cut_;
  cluster.AddObserver(*cut_);
  cluster.AddObserver(one_history_);
  cluster.AddObserver(rows_at_cut_);
  cluster.AddObserver(examples_);
  cluster.store().OnDone(
      [this](absl::Time, const Message& request) { OnStored(request.envelope.store_request()); });
  const absl::Duration safety = cluster.config().safety;
  const SnapshotTrainer::Options trainer{
      .plan = plan_,
      .progress = progress_,
      .examples = examples_,
      .violations = violations_,
      .think_max = std::max(kThinkMin, safety * (2 * plan_.haste / kStepsPerPhase))};
  for (uint32_t i = 0; i < plan_.workers(); ++i) {
    const std::string name = absl::StrCat("worker-", i);
    cluster.AddClient(name, proto::WORKER, [trainer](Random random) {
      return std::make_unique<SnapshotTrainer>(trainer, random);
    });
    if (i >= plan_.groups) cluster.Exclude(name);
  }
  cluster.AddClient("operator", proto::CLIENT, [this](Random random) {
    std::vector<SnapshotOperator::Restore> restores;
    if (plan_.restores) {
      for (int copy = 1; copy < 3; ++copy) {
        const std::string name = absl::StrCat("copy-", progress_.job, "-", copy);
        restores.push_back({plan_.Spec().name(), name});
        if (plan_.sparse) restores.push_back({plan_.RowSpec().name(), absl::StrCat(name, "-rows")});
      }
    }
    return std::make_unique<SnapshotOperator>(plan_.request_pause, std::move(restores), random,
                                              violations_);
  });
  cluster.simulator().After(safety * plan_.killed_at, [this] { Look(); });
}

void SnapshotWorkload::OnStored(const proto::StoreRequest& request) {
  const auto folder = std::string(request.path().substr(0, request.path().find('/')));
  if (request.has_remove()) cut_->Removed(cluster_->store().folder(), folder);
  if (!request.has_publish()) return;
  ++snapshots_;
  cut_->Published(cluster_->store().folder(), folder);
  rows_at_cut_.Published(cluster_->store().folder(), folder);
  const auto snapshot = SnapshotReader::Open(cluster_->store().folder(), folder);
  if (!snapshot.ok()) return;
  examples_.Published(snapshot->manifest());
  logs_ += static_cast<uint64_t>(std::ranges::count_if(snapshot->manifest().shards(), IsLog));
}

void SnapshotWorkload::Look() {
  if (cut_->has_published()) return StartOver();
  if (Finished()) return;
  cluster_->simulator().After(kLookAgain, [this] { Look(); });
}

void SnapshotWorkload::StartOver() {
  SimCluster::NextJob next{.groups = plan_.next_groups};
  std::vector<std::string> servers;
  for (const std::string& name : cluster_->names()) {
    if (absl::StartsWith(name, "server-")) servers.push_back(name);
    if (name != "scheduler" && random_.Chance(plan_.survival)) next.survivors.insert(name);
  }
  next.servers =
      1 + static_cast<uint32_t>(plan_.next_servers * static_cast<double>(servers.size()));
  for (size_t i = next.servers; i < servers.size(); ++i) next.absent.insert(servers[i]);
  for (uint32_t i = plan_.next_groups; i < plan_.workers(); ++i) {
    next.absent.insert(absl::StrCat("worker-", i));
  }
  ++progress_.job;
  progress_.job_since = cluster_->simulator().now();
  cluster_->StartOver(next);

  Folder& store = cluster_->store().folder();
  const auto found = ListSnapshots(store);
  for (const SnapshotSummary& summary : *found) {
    if (summary.complete.ok()) continued_ = summary.folder;
  }
  cut_->StartOver(store, continued_);
  rows_at_cut_.StartOver(store, continued_);
  const auto snapshot = SnapshotReader::Open(store, continued_);
  if (!snapshot.ok()) return;
  one_history_.StartOver(snapshot->manifest());
  examples_.StartOver(snapshot->manifest());
}

size_t SnapshotWorkload::workers_running() const {
  return static_cast<size_t>(std::count_if(
      cluster_->processes().begin(), cluster_->processes().end(), [](const auto& process) {
        return absl::StartsWith(process->name(), "worker-") && process->running();
      }));
}

bool SnapshotWorkload::Finished() const {
  // All programs of the first job end only when it is beyond repair, or when all workers are dead
  // for ever; then it still makes its snapshot.
  if (continued_.empty() && !cut_->history_was_lost()) return false;
  return progress_.EveryDeathIsNoticed() && workers_running() == 0;
}

// Nobody trains the tables that the operator restores.
void SnapshotWorkload::CheckRestored() {
  if (cluster_->published() == nullptr) return;
  for (const proto::Table& table : cluster_->published()->tables()) {
    if (!table.has_origin() || table.restore() != 0) continue;
    ++restored_;
    const auto snapshot = SnapshotReader::Open(cluster_->store().folder(), table.origin().folder());
    if (!snapshot.ok()) {
      violations_.Add(kSnapshot, snapshot.status().ToString());
      continue;
    }
    const auto& tables = snapshot->manifest().state().view().tables();
    const auto before = std::find_if(tables.begin(), tables.end(), [&](const proto::Table& known) {
      return known.spec().name() == table.origin().table();
    });
    for (const ShardEntries& entries : EntriesByShard(snapshot->manifest())) {
      const proto::SnapshotShard& entry = entries.newest();
      if (entry.table() != before->id()) continue;
      const auto stored = ReadStoredShard(*snapshot, entries);
      const ShardId id{TableId(table.id()), ShardIndex(entry.shard())};
      for (const ReplicaSnapshot& replica : cluster_->Replicas()) {
        if (!replica.has_content || replica.shard != id) continue;
        const proto::Shard& shard = table.shards(static_cast<int>(entry.shard()));
        if (stored.ok() && HoldsStored(replica, shard, *stored, entry)) continue;
        violations_.Add(kSnapshot, absl::StrCat("table '", table.spec().name(), "' shard ",
                                                entry.shard(), " on ", replica.server,
                                                " is not as in ", table.origin().folder()));
      }
    }
  }
}

bool SnapshotWorkload::HoldsStored(const ReplicaSnapshot& replica, const proto::Shard& shard,
                                   const StoredShard& stored,
                                   const proto::SnapshotShard& entry) const {
  for (const proto::Replica& member : shard.chain()) {
    if (NodeId(member.node()) != replica.node) continue;
    const server::ShardContent& content =
        *cluster_->FindReplica(replica.server, member.loop(), replica.shard)->content();
    const bool is_as_old =
        content.version().value() == entry.version() && content.samples() == entry.samples();
    if (const server::SparseShard* const rows = content.sparse()) {
      return is_as_old && rows->Digest() == stored.rows_digest;
    }
    bool is_equal = is_as_old && content.slots() == stored.slots.size() &&
                    std::ranges::equal(content.Values().As<float>(), stored.values);
    for (size_t slot = 0; is_equal && slot < stored.slots.size(); ++slot) {
      is_equal = std::ranges::equal(content.Slot(slot).As<float>(), stored.slots[slot]);
    }
    return is_equal;
  }
  return true;
}

void SnapshotWorkload::CheckRows() {
  const proto::ClusterView* view = cluster_->published();
  if (view == nullptr) return;
  for (const proto::Table& table : view->tables()) {
    if (table.spec().name() != plan_.RowSpec().name()) continue;
    for (const proto::Shard& shard : table.shards()) {
      const ShardId id{TableId(table.id()), ShardIndex(shard.index())};
      const proto::Replica& head = shard.chain(0);
      for (const ReplicaSnapshot& at : cluster_->Replicas()) {
        if (at.shard != id || at.node != NodeId(head.node()) || !at.has_content) continue;
        const server::ShardContent& content =
            *cluster_->FindReplica(at.server, head.loop(), id)->content();
        RowsAtCut::Rows rows;
        content.sparse()->ForEachRow([&](const server::SparseRow& row) {
          const RowLayout layout = content.sparse()->layout();
          std::vector<float>& values = rows[row.key];
          values.resize(kRowColumns);
          Decode(layout.type, {row.values, layout.value_bytes()}, values);
        });
        rows_at_cut_.Check(at.server, table, {id, at.generation}, content.version().value(), {},
                           rows);
      }
    }
  }
}

void SnapshotWorkload::Check() {
  CheckRestored();
  if (plan_.sparse) CheckRows();
  if (continued_.empty() && !cut_->history_was_lost())
    violations_.Add(kSnapshot, "there was no snapshot to continue");
}

std::string SnapshotWorkload::Report() const {
  return absl::StrCat(Describe(plan_), " steps=", progress_.steps, " snapshots=", snapshots_,
                      " logs=", logs_, " restored=", restored_, " continued=", continued_,
                      " data_before=", examples_.finished_before(),
                      " finished=", progress_.finished.size(), " rows=", rows_at_cut_.checked());
}

}  // namespace

std::unique_ptr<Workload> MakeSnapshotWorkload(Random random, Violations& violations) {
  return std::make_unique<SnapshotWorkload>(DrawSnapshotPlan(random), random, violations);
}

std::unique_ptr<Workload> MakeSnapshotSparseWorkload(Random random, Violations& violations) {
  return std::make_unique<SnapshotWorkload>(DrawSnapshotSparsePlan(random), random, violations);
}

}  // namespace covey::sim
