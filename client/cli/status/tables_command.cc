// SPDX-License-Identifier: Apache-2.0
#include "client/cli/status/tables_command.h"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/console/command.h"
#include "client/cli/console/text_file.h"
#include "client/cli/scheduler/scheduler_options.h"
#include "client/cli/scheduler/scheduler_stub.h"
#include "client/cli/status/rows_view.h"
#include "client/cli/status/tables_view.h"
#include "common/contract/contract.h"

namespace covey::cli {
namespace {

// "set-contract NAME CONTRACT", or nothing.
struct Change {
  std::string table;
  Contract contract;
};

absl::StatusOr<std::optional<Change>> ChangeOf(const std::vector<std::string>& words) {
  if (words.empty()) return std::nullopt;
  if (words[0] != "set-contract" || words.size() != 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", words[0], "' with ", words.size() - 1,
                     " words after it; write set-contract NAME CONTRACT, or nothing to see all"));
  }
  absl::StatusOr<Contract> contract = ParseContract(words[2]);
  if (!contract.ok()) return contract.status();
  return Change{.table = words[1], .contract = *contract};
}

// Of sparse tables; servers tell it with their heartbeats.
absl::StatusOr<RowsByTable> FetchRows(SchedulerStub& scheduler,
                                      const proto::ListTablesReply& tables) {
  const auto is_sparse = [](const proto::Table& table) { return table.spec().has_sparse(); };
  if (std::none_of(tables.tables().begin(), tables.tables().end(), is_sparse)) {
    return RowsByTable();
  }
  const absl::StatusOr<proto::StatusReply> status = scheduler.GetStatus();
  if (!status.ok()) return status.status();
  return RowsOf(*status);
}

// The tables of the cluster; after a change, only the changed one.
absl::StatusOr<proto::ListTablesReply> Run(SchedulerStub& scheduler,
                                           const std::optional<Change>& change) {
  if (change) {
    const auto done = scheduler.SetContract(change->table, ContractToProto(change->contract));
    if (!done.ok()) return done.status();
  }
  absl::StatusOr<proto::ListTablesReply> tables = scheduler.ListTables();
  if (!tables.ok() || !change) return tables;
  proto::ListTablesReply changed;
  for (proto::Table& table : *tables->mutable_tables()) {
    if (table.spec().name() == change->table) changed.add_tables()->Swap(&table);
  }
  return changed;
}

}  // namespace

int TablesCommand(int count, const char* const* arguments) {
  SchedulerOptions asked;
  std::vector<std::string> words;
  ConfigFile options("covey tables",
                     "Shows the tables of a cluster, their contracts and sizes; changes a "
                     "contract while the table is in use.");
  asked.AddTo(options);
  options.TakeRest(&words,
                   "[set-contract NAME CONTRACT]   bsp, ssp:N, async, buffered[:K][,cut=N], "
                   "local:H[,quorum=N][,grace=TIME][,overlap=N]");
  if (const auto code = asked.Load(options, count, arguments)) return *code;
  const absl::StatusOr<std::optional<Change>> change = ChangeOf(words);
  if (!change.ok()) {
    PrintFailure(arguments[0], change.status());
    return kExitUsage;
  }

  SchedulerStub scheduler(asked.target());
  const absl::StatusOr<proto::ListTablesReply> tables = Run(scheduler, *change);
  if (!tables.ok()) {
    PrintFailure(arguments[0], tables.status());
    return ExitCodeOf(tables.status());
  }
  const absl::StatusOr<RowsByTable> rows = FetchRows(scheduler, *tables);
  if (!rows.ok()) {
    PrintFailure(arguments[0], rows.status());
    return ExitCodeOf(rows.status());
  }
  WriteAll(STDOUT_FILENO, asked.json ? TablesJson(*tables, *rows) : TablesText(*tables, *rows));
  return kExitOk;
}

}  // namespace covey::cli
