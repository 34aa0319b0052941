// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/scheduler.pb.h"
#include "scheduler/state/job_spec.h"

namespace covey::scheduler {

// Which nodes may register, and under which rank. Pure.

// INVALID_ARGUMENT: malformed, too large, or for another job.
absl::Status CheckRegistration(const JobSpec& job, const proto::RegisterRequest& request);

// The rank of a new node: the one that it asks for, or the lowest that no live node holds. With
// JobSpec::elastic there may be more servers and workers than expected. ALREADY_EXISTS: a live node
// holds the wanted rank; if that node has crashed, this is noticed within `retry_after`,
// so a caller that a supervisor has restarted asks again.
// FAILED_PRECONDITION: the job is full.
absl::StatusOr<uint32_t> ChooseRank(const JobSpec& job, const proto::ClusterView& view,
                                    const proto::RegisterRequest& request,
                                    absl::Duration retry_after);

}  // namespace covey::scheduler
