// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/cluster/ids.h"
#include "proto/view.pb.h"
#include "scheduler/state/cluster_state.h"
#include "scheduler/tables/table_placement.h"

namespace covey::scheduler {

// The tables of the job, and the server loops that hold their shards at first. Chains (chains.h)
// move shards later. Each change is a transaction of its own.
//
// Actor-confined, deterministic. `state` outlives it.
class Tables {
 public:
  explicit Tables(
      ClusterState& state, LoadOf load_of = [](NodeId) { return nullptr; })
      : state_(state), load_of_(std::move(load_of)) {}

  // Creates a table, or finds an equal one, and places its shards (PlaceTable). Idempotent.
  // A table that the job's initial values name (LogRecord.initial_values) begins with those;
  // another one whose initializer is GIVEN waits for its values (Initializations).
  // INVALID_ARGUMENT: bad spec, initial values of another length, or one replica where the job is
  // replicated (JobSpec.durability). ALREADY_EXISTS: a table of this name has another spec.
  // RESOURCE_EXHAUSTED: too many tables or shards, or more bytes than servers have memory for
  // (CheckMemory). UNAVAILABLE: no server. FAILED_PRECONDITION: the
  // spec, or the job, asks for more replicas than there are servers.
  absl::StatusOr<TableId> Create(const proto::TableSpec& spec);

  // Places the tables of the snapshot that this job continues (LogRecord.restore), if that is still
  // to be done: cut as they were, over the servers that there are. Precondition: some server is
  // ALIVE.
  void PlaceRestored();

  // Adds tables of a snapshot to the running job: each as it is there, with its name in this job,
  // and with `origin` and `restore` set. Ids and servers are new. All of them, or none.
  // ALREADY_EXISTS: the job has a table of this name; others as Create.
  absl::Status Restore(const std::vector<proto::Table>& tables);
  // The restore of this id is at its end: OK = its tables are like any others now. Otherwise they
  // are dropped again.
  void EndRestore(uint64_t restore, const absl::Status& outcome);

  // NOT_FOUND: no such table.
  absl::Status Drop(absl::string_view name);

  // Changes how groups relate through a table in use; `why` is the evidence, for users. The spec of
  // the table does not change. Returns the epoch since which the contract is in force; 0 = since
  // the table's creation. Idempotent. NOT_FOUND: no such table. INVALID_ARGUMENT: the contract is
  // invalid, or is not allowed for this table: local is neither left nor entered, and bsp needs a
  // live group.
  absl::StatusOr<Epoch> SetContract(absl::string_view name, const proto::Contract& contract,
                                    absl::string_view why);

 private:
  ClusterState& state_;
  const LoadOf load_of_;
};

}  // namespace covey::scheduler
