// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/scheduler/scheduler_stub.h"
#include "proto/scheduler.pb.h"

namespace covey::cli {

// Asks the scheduler for a snapshot of its job, and waits until that is
// complete. Says once per second on standard error how far it is. A snapshot that is being made
// already is the one.
//
// UNAVAILABLE: no scheduler answers; FAILED_PRECONDITION: the job has no store; ABORTED: it could
// not be made, and why; DEADLINE_EXCEEDED: it was not complete within `timeout`, and goes on;
// CANCELLED: a signal came, and it goes on.
absl::StatusOr<proto::SnapshotStatus> CreateSnapshot(const SchedulerTarget& scheduler,
                                                     absl::Duration timeout);

}  // namespace covey::cli
