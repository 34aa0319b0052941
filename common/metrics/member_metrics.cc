// SPDX-License-Identifier: Apache-2.0
#include "common/metrics/member_metrics.h"

namespace covey {

void AddMemberMetrics(const Member& member, bool is_insecure, MetricPage& page) {
  page.Gauge("covey_insecure", "1 if everybody who reaches the process may take part in the job.",
             is_insecure ? 1 : 0);
  page.Gauge("covey_view_epoch", "The epoch of the view that the process knows.",
             static_cast<double>(member.view()->epoch().value()));
}

std::vector<ReadyCondition> MemberConditions(const Member& member, absl::Time now) {
  return {{.name = "registered",
           .holds = member.state() == Member::State::kMember,
           .why = "it is not a member of the job, or not yet"},
          {.name = "lease",
           .holds = member.lease_until() > now,
           .why = "the scheduler has not answered a heartbeat for the lease term"}};
}

}  // namespace covey
