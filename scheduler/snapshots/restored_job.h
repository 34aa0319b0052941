// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "proto/log.pb.h"
#include "proto/snapshot.pb.h"
#include "scheduler/state/job_spec.h"

namespace covey::scheduler {

// The first state of a job that continues a snapshot: without nodes and groups; groups will count
// their steps from where those of the earlier run stood; the training data that was done at the cut
// is done; tables are placed when the servers are there (Tables::PlaceRestored). Epochs and ids of
// nodes, groups and tables begin above all that the earlier run can have used, so nothing of that
// run is mistaken for the present.
//
// Any number of servers, groups and workers continues it. Pure. INVALID_ARGUMENT: the snapshot is
// of another job, or imported.
absl::StatusOr<proto::LogRecord> RestoredJob(const JobSpec& job,
                                             const proto::SnapshotManifest& manifest);

}  // namespace covey::scheduler
