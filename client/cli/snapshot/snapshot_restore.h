// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/scheduler/scheduler_stub.h"
#include "proto/scheduler.pb.h"

namespace covey::cli {

// The request of a user who names a snapshot and tables, each as "NAME[=NEWNAME]".
// INVALID_ARGUMENT: a table's name is missing. Pure.
absl::StatusOr<proto::RestoreTablesRequest> RestoreRequest(const std::string& snapshot,
                                                           const std::vector<std::string>& tables);

// Asks the scheduler to make tables of a snapshot in its running job, and
// waits until they are ready. Says once per second on standard error how far that is.
//
// UNAVAILABLE: no scheduler answers; FAILED_PRECONDITION: the job has no store, or other tables are
// being restored; INVALID_ARGUMENT: no snapshot is called so; ABORTED: the tables could not be
// made, why, and none is left; DEADLINE_EXCEEDED: they were not ready within `timeout`, and the
// restore goes on; CANCELLED: a signal came, and it goes on.
absl::StatusOr<proto::RestoreStatus> RestoreTables(const SchedulerTarget& scheduler,
                                                   const proto::RestoreTablesRequest& request,
                                                   absl::Duration timeout);

// What was restored, for people and for programs. Pure.
std::string RestoredText(const proto::RestoreStatus& restored);
std::string RestoredJson(const proto::RestoreStatus& restored);

}  // namespace covey::cli
