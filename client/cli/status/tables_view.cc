// SPDX-License-Identifier: Apache-2.0
#include "client/cli/status/tables_view.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/console/figures.h"
#include "client/cli/console/json_text.h"
#include "client/cli/console/table_shape.h"
#include "client/cli/console/text_table.h"
#include "client/cli/status/replication.h"
#include "client/cli/status/rows_view.h"
#include "common/contract/contract.h"
#include "common/contract/momentum_governor.h"

namespace covey::cli {
namespace {

std::string ShowContract(const proto::Table& table) {
  const absl::StatusOr<Contract> known = ContractInForce(table);
  return known.ok() ? ContractName(*known) : "unknown";
}

std::vector<std::string> TableCells(const proto::Table& table) {
  uint64_t elements = 0;
  for (const proto::Shard& shard : table.shards()) elements += shard.element_count();
  const proto::Optimizer::Kind optimizer = table.spec().optimizer().kind();
  return {table.spec().name(), ShowShape(table.spec()),
          table.has_contract()
              ? absl::StrCat(ShowContract(table), " since epoch ", table.contract_epoch())
              : ShowContract(table),
          absl::AsciiStrToLower(proto::Optimizer::Kind_Name(optimizer)),
          ShowDurability(table.spec()), absl::StrCat(table.shards_size()),
          // How many rows there are is in the servers' loads.
          table.spec().has_sparse() ? std::string("-") : ShowBytes(elements * sizeof(float))};
}

// "2", "1 to 2", including replicas that are being filled.
std::string ShowChains(const proto::Table& table) {
  int least = table.shards().empty() ? 0 : table.shards(0).chain_size();
  int most = least;
  for (const proto::Shard& shard : table.shards()) {
    least = std::min(least, shard.chain_size());
    most = std::max(most, shard.chain_size());
  }
  return least == most ? absl::StrCat(least) : absl::StrCat(least, " to ", most);
}

// A line for each table that cannot be used yet.
template <typename Tables>
std::string ShowWaiting(const Tables& tables) {
  std::string text;
  for (const proto::Table& table : tables) {
    if (!table.has_initialization()) continue;
    absl::StrAppend(&text, table.spec().name(), " waits for its initial values\n");
  }
  return text;
}

// A block of its own.
template <typename Tables>
std::string ShowRows(const Tables& tables, const RowsByTable& rows) {
  const std::string text = RowsText(tables, rows);
  return text.empty() ? "" : absl::StrCat("\n", text);
}

}  // namespace

std::string TablesText(const proto::ListTablesReply& tables, const RowsByTable& rows) {
  if (tables.tables().empty()) return "no tables yet\n";
  TextTable text(
      {"TABLE", "SHAPE", "CONTRACT", "OPTIMIZER", "DURABILITY", "SHARDS", "BYTES", "REPLICAS"});
  for (const proto::Table& table : tables.tables()) {
    std::vector<std::string> cells = TableCells(table);
    cells.push_back(ShowChains(table));
    text.Add(std::move(cells));
  }
  return text.Render() + ShowWaiting(tables.tables()) + ShowRows(tables.tables(), rows);
}

std::string TablesJson(const proto::ListTablesReply& tables, const RowsByTable& rows) {
  nlohmann::ordered_json json = ToJson(tables);
  json["rows"] = nlohmann::ordered_json::array();
  for (const auto& [table, report] : rows) json["rows"].push_back(ToJson(report));
  return JsonText(json);
}

std::string TablesInUseText(const proto::StatusReply& status) {
  TextTable text({"TABLE", "SHAPE", "CONTRACT", "OPTIMIZER", "DURABILITY", "SHARDS", "BYTES",
                  "REPLICAS", "UPDATES", "DISCARDED", "STALENESS", "MOMENTUM"});
  const uint32_t servers = ServersStaying(status.view());
  // Summed over the servers.
  AsynchronyByTable asynchrony;
  for (const proto::NodeStatus& node : status.nodes()) {
    for (const proto::TableAsynchrony& report : node.load().tables()) {
      AddAsynchrony(report, asynchrony);
    }
  }
  for (const proto::Table& table : status.view().tables()) {
    const proto::TableAsynchrony& use = asynchrony[table.id()];
    std::string momentum =
        absl::StrFormat("%.2f implicit + %.2f", use.implicit_momentum(), use.explicit_momentum());
    if (use.target_momentum() > 0) {
      absl::StrAppendFormat(&momentum, " of %.2f", use.target_momentum());
    }
    std::vector<std::string> cells = TableCells(table);
    cells.push_back(ReplicationOf(table, servers).Show());
    for (const std::string& cell : {ShowCount(use.updates()), ShowCount(use.discarded()),
                                    ShowNumber(use.staleness()), momentum}) {
      cells.push_back(use.updates() > 0 ? cell : "-");
    }
    text.Add(std::move(cells));
  }
  return text.Render() + ShowWaiting(status.view().tables()) +
         ShowRows(status.view().tables(), RowsOf(status));
}

}  // namespace covey::cli
