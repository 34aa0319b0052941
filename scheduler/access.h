// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "common/net/control_methods.h"
#include "common/net/message.h"
#include "common/security/identity.h"
#include "scheduler/nodes/membership.h"
#include "scheduler/state/cluster_state.h"

namespace covey::scheduler {

// Whether the sender of a control request may call its method. INVALID_ARGUMENT: it belongs to
// another job. ABORTED: it is not an ALIVE node under this incarnation; but a node that has left
// may repeat its request to leave. FAILED_PRECONDITION: it has not registered, and the request is
// for nodes only.
absl::Status CheckAccess(const ControlMethod& method, const Message& request,
                         const ClusterState& state, const Membership& membership);

// Whether the caller of a request that passes CheckAccess has the right to it (security/rights.h).
// A node is a caller's own when its role is that of the caller's certificate, and its rank, too,
// where the certificate names one: certificates of a role without a rank are as good as each other.
// `scheduler` is this scheduler's identity. PERMISSION_DENIED: it has not, and why; also whoever
// speaks for a node that is not its own, whatever the call;
// UNAUTHENTICATED: it has shown no certificate. INVALID_ARGUMENT: a node that registers has no key
// with which its messages are sealed.
absl::Status CheckCaller(const Identity& scheduler, const ControlMethod& method,
                         const Message& request, const ClusterState& state);

}  // namespace covey::scheduler
