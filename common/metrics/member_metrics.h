// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/time/time.h"
#include "common/metrics/metric_page.h"
#include "common/metrics/metrics_server.h"
#include "common/runtime/member.h"

namespace covey {

// What every member of a job shows: whether it is exposed, and how far it follows the scheduler.
// `is_insecure`: everybody who reaches the process may take part in the job.
void AddMemberMetrics(const Member& member, bool is_insecure, MetricPage& page);

// It is registered, and has its lease.
std::vector<ReadyCondition> MemberConditions(const Member& member, absl::Time now);

}  // namespace covey
