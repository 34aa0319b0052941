// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/net/message.h"
#include "proto/scheduler.pb.h"
#include "proto/snapshot.pb.h"
#include "scheduler/snapshots/manifest_search.h"
#include "scheduler/state/cluster_state.h"
#include "scheduler/tables/tables.h"

namespace covey::scheduler {

// The tables of the job as a request wants them: of the snapshot, with their names in the job, with
// TableOrigin and Table.restore. Pure. INVALID_ARGUMENT: the snapshot is imported, so it knows no
// optimizer, or two tables get one name. NOT_FOUND: a table is not in it.
absl::StatusOr<std::vector<proto::Table>> TablesToRestore(
    const proto::RestoreTablesRequest& request, const proto::SnapshotManifest& manifest,
    uint64_t restore);

// Restores tables of a snapshot into the running job, one request at a time: all of its tables, or
// none.
//
//            the manifest is read,          every full replica of every
//            the tables are in the view     shard is LOADED
//   reading ───────────────────────▶ loading ───────────────────────▶ complete
//      │                                │
//      │ no such snapshot or table,     │ a replica cannot load, or none has
//      │ a name is taken, …             │ been LOADED for kStallMax
//      └───────────────▶ failed ◀───────┘   the tables are dropped again
//
// Actor-confined, deterministic. `state` and `tables` outlive it. A restarted scheduler goes on
// with tables that are loading; servers repeat their reports.
class TableRestores {
 public:
  static constexpr absl::Duration kStallMax = absl::Minutes(5);

  // Whether the snapshot in this folder is being removed. Its tables may not refer to it then.
  using IsGoing = std::function<bool(const std::string& folder)>;

  TableRestores(bool has_store, ClusterState& state, Tables& tables, IsGoing is_going)
      : has_store_(has_store), state_(state), tables_(tables), is_going_(std::move(is_going)) {}

  // Once, before anything else.
  void Start(absl::Time now);
  // The id of the restore; of the one that is under way, if the request is the same.
  // FAILED_PRECONDITION: there is no store, or another restore is under way. INVALID_ARGUMENT: no
  // snapshot is called so.
  absl::StatusOr<uint64_t> Begin(absl::Time now, const proto::RestoreTablesRequest& request);
  // False: it is no reply to this machine.
  bool OnStoreReply(absl::Time now, const Message& reply);
  // Reports about replicas; Chains gets them, too, and later.
  void OnReports(absl::Time now, const proto::ReplicaReportRequest& request);
  // To be called at NextTick, and after each change of a chain.
  void Tick(absl::Time now);
  absl::Time NextTick() const;

  // For the store, since the last call.
  std::vector<Message> TakeRequests() { return search_.TakeRequests(); }
  void FillStatus(absl::Time now, proto::StatusReply& reply) const;

 private:
  // A full replica that is LOADED: its table, shard, generation and node.
  using Loaded = std::tuple<uint32_t, uint32_t, uint64_t, uint64_t>;

  bool IsLoading() const { return status_.state() == proto::RestoreStatus::LOADING; }
  bool IsUnderWay() const {
    return IsLoading() || status_.state() == proto::RestoreStatus::READING;
  }
  void OnManifest(absl::Time now, const absl::StatusOr<proto::SnapshotManifest>& manifest);
  // Counts the shards whose full replicas are all LOADED.
  void Count(absl::Time now);
  void End(absl::Time now, const absl::Status& outcome);

  // Constant after construction.
  const bool has_store_;
  ClusterState& state_;
  Tables& tables_;
  const IsGoing is_going_;

  // Owned by the actor's thread. Of the newest restore:
  proto::RestoreTablesRequest request_;
  proto::RestoreStatus status_;  // its state is unspecified before the first
  ManifestSearch search_;
  std::set<Loaded> loaded_;
  absl::Time since_;
  absl::Time last_progress_;
};

}  // namespace covey::scheduler
