// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/scheduler/scheduler_stub.h"
#include "client/resume_token.h"
#include "common/store/folder.h"
#include "proto/view.pb.h"

namespace covey::cli {

// Where the rows of an export come from, and what they are.
struct RowsOrigin {
  std::string job;
  proto::Table table;
  // The snapshot's folder; empty = a running cluster.
  std::string snapshot;
  // From here a later export of changes goes on; and, of changes, from where this one did.
  client::ResumeToken token;
  std::optional<client::ResumeToken> since;
  // Most training examples behind a shard.
  uint64_t samples = 0;
  // Of changes: keys whose rows went, in no order.
  std::vector<uint64_t> removed;
};

// A status that is not OK ends the reading, and is its result.
using TakeRows =
    absl::FunctionRef<absl::Status(std::span<const uint64_t> keys, std::span<const float> rows)>;

// All rows of a table of a snapshot in the store, as they were at its cut. `snapshot`: as a user
// names it. Verifies what it reads. Blocks. NOT_FOUND: no such snapshot or
// table. INVALID_ARGUMENT: the table is dense. Others as SnapshotReader.
absl::StatusOr<RowsOrigin> ReadStoredTable(Folder& store, const std::string& snapshot,
                                           const std::string& table, TakeRows take);

struct ClusterChoice {
  SchedulerTarget scheduler;
  std::string job;
  // Only what has changed since.
  std::optional<client::ResumeToken> since;
  absl::Duration timeout;  // of each piece
};
// The rows of a running cluster's table. Blocks. NOT_FOUND: no such table. INVALID_ARGUMENT: it is
// dense. Others as RowReader.
absl::StatusOr<RowsOrigin> ReadRunningTable(const ClusterChoice& cluster, const std::string& table,
                                            TakeRows take);

}  // namespace covey::cli
