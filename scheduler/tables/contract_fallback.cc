// SPDX-License-Identifier: Apache-2.0
#include "scheduler/tables/contract_fallback.h"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "common/contract/contract.h"
#include "common/contract/momentum_governor.h"

namespace covey::scheduler {
namespace {

// Servers that hold a table's shards.
std::set<NodeId> HoldersOf(const proto::Table& table) {
  std::set<NodeId> holders;
  for (const proto::Shard& shard : table.shards()) {
    if (shard.chain_size() > 0) holders.insert(NodeId(shard.chain(0).node()));
  }
  return holders;
}

}  // namespace

void ContractFallback::OnHeartbeat(NodeId server, const proto::ServerLoad& load) {
  if (!options_.enabled) return;
  std::set<TableId> known;
  for (const proto::Table& table : state_.view().tables()) known.insert(TableId(table.id()));
  std::erase_if(reports_, [&](const auto& entry) { return known.count(entry.first) == 0; });
  for (const proto::TableAsynchrony& report : load.tables()) {
    const TableId id(report.table());
    if (known.count(id) == 0) continue;
    reports_[id][server] = report;
    Judge(id);
  }
}

void ContractFallback::Judge(TableId id) {
  const auto& tables = state_.view().tables();
  const proto::Table& table =
      *std::find_if(tables.begin(), tables.end(),
                    [id](const proto::Table& candidate) { return candidate.id() == id.value(); });
  std::vector<proto::TableAsynchrony> reports;
  const auto& known = reports_[id];
  for (NodeId holder : HoldersOf(table)) {
    const auto report = known.find(holder);
    if (report == known.end()) return;
    reports.push_back(report->second);
  }
  const absl::StatusOr<Contract> contract = ContractInForce(table);
  if (!contract.ok()) return;
  const std::optional<ContractChange> change = FallBackToBuffered(*contract, reports);
  if (!change) return;
  // SetContract may refuse; then the table keeps its contract.
  tables_.SetContract(table.spec().name(), ContractToProto(change->contract), change->evidence)
      .IgnoreError();
}

void ContractFallback::OnDeparture(NodeId node) {
  for (auto& [table, reports] : reports_) reports.erase(node);
}

}  // namespace covey::scheduler
