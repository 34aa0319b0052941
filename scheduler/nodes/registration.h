#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/scheduler.pb.h"
#include "scheduler/config.h"

namespace covey::scheduler {

// Who may register, and under which rank. Pure.

// INVALID_ARGUMENT: malformed, too large, or for another job.
absl::Status CheckRegistration(const Config& config, const proto::RegisterRequest& request);

// The rank of a new node: the one it asks for, or the lowest that no live node holds. With
// Config::elastic servers and workers may be more than were expected. ALREADY_EXISTS: a live node holds the
// wanted rank. FAILED_PRECONDITION: the job is full.
absl::StatusOr<uint32_t> ChooseRank(const Config& config, const proto::ClusterView& view,
                                    const proto::RegisterRequest& request);

}  // namespace covey::scheduler
