// SPDX-License-Identifier: Apache-2.0
#include "client/cli/rows/rows_origin.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "client/cli/scheduler/scheduler_stub.h"
#include "client/parameter_client.h"
#include "client/row_reader.h"
#include "client/table.h"
#include "common/base/status_macros.h"
#include "common/snapshot/shard_entries.h"
#include "common/snapshot/snapshot_reader.h"
#include "server/replay/stored_content.h"

namespace covey::cli {
namespace {

// `where`: "snapshot-000003-e12" or "the cluster", for errors.
template <typename Tables>
absl::StatusOr<proto::Table> FindSparse(const Tables& tables, const std::string& name,
                                        const std::string& where) {
  for (const proto::Table& table : tables) {
    if (table.spec().name() != name) continue;
    if (table.spec().has_sparse()) return table;
    return absl::InvalidArgumentError(absl::StrCat(
        "table '", name, "' is dense; `covey export` writes it from a cluster, and `covey ",
        "snapshot export` from a snapshot"));
  }
  return absl::NotFoundError(absl::StrCat("no table '", name, "' in ", where,
                                          "; `covey tables` and `covey snapshot show` list them"));
}

}  // namespace

absl::StatusOr<RowsOrigin> ReadStoredTable(Folder& store, const std::string& snapshot,
                                           const std::string& table, TakeRows take) {
  COVEY_ASSIGN_OR_RETURN(const std::string folder, FindSnapshot(store, snapshot));
  COVEY_ASSIGN_OR_RETURN(const SnapshotReader reader, SnapshotReader::Open(store, folder));
  const proto::ClusterView& view = reader.manifest().state().view();
  COVEY_ASSIGN_OR_RETURN(const proto::Table found, FindSparse(view.tables(), table, folder));
  RowsOrigin origin{.job = view.job_name(),
                    .table = found,
                    .snapshot = folder,
                    .token = {.run = view.run(), .table = TableId(found.id()), .shards = {}}};
  for (const proto::Shard& shard : found.shards()) {
    const ShardEntries entries = EntriesOf(reader.manifest(), found.id(), shard.index());
    COVEY_RETURN_IF_ERROR(server::ReadStoredRows(reader, found, shard, entries, take));
    const proto::SnapshotShard& newest = entries.newest();
    origin.token.shards.push_back(
        {.generation = newest.generation(), .version = Version(newest.version())});
    origin.samples = std::max(origin.samples, newest.samples());
  }
  return origin;
}

absl::StatusOr<RowsOrigin> ReadRunningTable(const ClusterChoice& cluster, const std::string& table,
                                            TakeRows take) {
  COVEY_ASSIGN_OR_RETURN(const proto::ListTablesReply listed,
                         SchedulerStub(cluster.scheduler).ListTables());
  COVEY_ASSIGN_OR_RETURN(const proto::Table found,
                         FindSparse(listed.tables(), table, "the cluster"));
  COVEY_ASSIGN_OR_RETURN(const auto client,
                         client::ParameterClient::Connect({.scheduler = cluster.scheduler.addresses,
                                                           .job = cluster.job,
                                                           .tls = cluster.scheduler.tls}));
  COVEY_ASSIGN_OR_RETURN(
      const auto reader,
      client::RowReader::Create(*client, client::TableOf(found),
                                {.since = cluster.since, .deadline = cluster.timeout}));
  RowsOrigin origin{.job = cluster.job, .table = found, .snapshot = "", .since = cluster.since};
  while (true) {
    COVEY_ASSIGN_OR_RETURN(const auto piece, reader->Next());
    if (!piece) break;
    COVEY_RETURN_IF_ERROR(take(piece->keys, piece->rows));
    origin.removed.insert(origin.removed.end(), piece->removed.begin(), piece->removed.end());
  }
  origin.token = reader->token();
  origin.samples = reader->samples();
  return origin;
}

}  // namespace covey::cli
