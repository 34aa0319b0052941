// SPDX-License-Identifier: Apache-2.0
#include "scheduler/access.h"

#include "absl/strings/str_cat.h"

namespace covey::scheduler {
absl::Status CheckAccess(const ControlMethod& method, const Message& request,
                         const ClusterState& state, const Membership& membership) {
  const proto::Envelope& envelope = request.envelope;
  if (const uint64_t job = envelope.header().job(); job != 0 && job != state.view().job()) {
    return absl::InvalidArgumentError(
        absl::StrCat("this scheduler runs job '", state.job().name,
                     "', the sender belongs to another one: check the scheduler's address"));
  }
  if (envelope.has_register_request()) return absl::OkStatus();
  const NodeId sender = request.from().node;
  if (sender != NodeId()) {
    if (envelope.has_leave_request() && membership.HasLeft(sender, request.incarnation())) {
      return absl::OkStatus();
    }
    return membership.CheckSender(sender, request.incarnation());
  }
  if (method.access == ControlAccess::kAnyone) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(BodyName(envelope), ": the sender has not registered; register first"));
}

}  // namespace covey::scheduler
