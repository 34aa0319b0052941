// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "common/net/control_methods.h"
#include "common/net/message.h"
#include "scheduler/nodes/membership.h"
#include "scheduler/state/cluster_state.h"

namespace covey::scheduler {

// Whether the sender of a control request may call its method. INVALID_ARGUMENT: it belongs to
// another job. ABORTED: it is not an ALIVE node under this incarnation; but a node that has left
// may repeat its request to leave. FAILED_PRECONDITION: it has not registered, and the request is
// for nodes only.
absl::Status CheckAccess(const ControlMethod& method, const Message& request,
                         const ClusterState& state, const Membership& membership);

}  // namespace covey::scheduler
