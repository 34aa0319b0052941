// SPDX-License-Identifier: Apache-2.0
#include "scheduler/access.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/security/rights.h"
#include "scheduler/state/view_lookup.h"

namespace covey::scheduler {
namespace {

constexpr absl::string_view kService = "covey.proto.Scheduler";

std::optional<IdentityRole> RoleOf(proto::Role role) {
  switch (role) {
    case proto::SERVER:
      return IdentityRole::kServer;
    case proto::WORKER:
      return IdentityRole::kWorker;
    case proto::CLIENT:
      return IdentityRole::kClient;
    default:
      return std::nullopt;
  }
}

// Whether the caller may be a node with this role and rank.
bool Fits(const Identity& caller, proto::Role role, int64_t rank) {
  const std::optional<IdentityRole> as = RoleOf(role);
  return as.has_value() && MayBe(caller, *as, rank);
}

bool IsOwn(const Identity& caller, const proto::Node& node) {
  return Fits(caller, node.role(), node.rank());
}

// Whether the registration is for a node that may be the caller's, and does not repeat that of
// another one.
bool RegistersOwn(const Identity& caller, const Message& request, const proto::ClusterView& view) {
  const proto::RegisterRequest& node = request.envelope.register_request();
  // With a rank in its certificate, it must ask for this rank.
  const bool asks_for_any =
      node.rank() < 0 && caller.rank.has_value() && RoleOf(node.role()) == caller.role;
  if (asks_for_any || !Fits(caller, node.role(), node.rank())) return false;
  return std::all_of(view.nodes().begin(), view.nodes().end(), [&](const proto::Node& each) {
    return each.incarnation() != request.incarnation().value() || IsOwn(caller, each);
  });
}

// Null when there is no such node.
const proto::Node* FindNamed(const proto::ClusterView& view, absl::string_view name) {
  const auto& nodes = view.nodes();
  const auto found = std::find_if(nodes.begin(), nodes.end(),
                                  [name](const proto::Node& node) { return node.name() == name; });
  return found == nodes.end() ? nullptr : &*found;
}

// Of the node that the request speaks for or, for Drain, acts on.
CallSubject SubjectOf(const Identity& caller, const Message& request, const ClusterState& state) {
  const proto::Envelope& envelope = request.envelope;
  const proto::ClusterView& view = state.view();
  bool is_own = false;
  if (envelope.has_register_request()) {
    is_own = RegistersOwn(caller, request, view);
  } else {
    const NodeId sender = request.from().node;
    if (sender == NodeId()) return CallSubject::kNone;
    const proto::Node* const node = envelope.has_drain_request()
                                        ? FindNamed(view, envelope.drain_request().node())
                                        : FindNode(view, sender);
    is_own = node != nullptr && IsOwn(caller, *node);
  }
  return is_own ? CallSubject::kOwn : CallSubject::kOther;
}

// Whether the request says that it is from a node which is not the caller's.
bool SpeaksForAnother(const Identity& caller, const Message& request, const ClusterState& state) {
  const NodeId sender = request.from().node;
  if (sender == NodeId()) return false;
  const proto::Node* const node = FindNode(state.view(), sender);
  return node == nullptr || !IsOwn(caller, *node);
}

}  // namespace

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

absl::Status CheckCaller(const Identity& scheduler, const ControlMethod& method,
                         const Message& request, const ClusterState& state) {
  if (request.caller == nullptr) {
    return absl::UnauthenticatedError(
        absl::StrCat(method.rpc, ": the caller has shown no certificate; give it --tls DIR"));
  }
  COVEY_RETURN_IF_ERROR(
      CheckRight(*request.caller, {.service = kService,
                                   .method = method.rpc,
                                   .trust_domain = scheduler.trust_domain,
                                   .job = state.job().name,
                                   .subject = SubjectOf(*request.caller, request, state)}));
  if (SpeaksForAnother(*request.caller, request, state)) {
    return absl::PermissionDeniedError(
        absl::StrCat(method.rpc, ": ", Describe(*request.caller), " may not speak for node ",
                     request.from().node.value(), ", which is not its own"));
  }
  if (request.envelope.has_register_request() &&
      request.envelope.register_request().data_key().empty()) {
    return absl::InvalidArgumentError(
        "register: the process has no key to seal its messages with; it is of an earlier version, "
        "replace it");
  }
  return absl::OkStatus();
}

}  // namespace covey::scheduler
