// SPDX-License-Identifier: Apache-2.0
#include "scheduler/audit_trail.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "common/security/identity.h"

namespace covey::scheduler {
namespace {

// What a call that administers the job names; nothing = it is another call.
std::optional<std::string> TargetOf(const proto::Envelope& envelope) {
  switch (envelope.body_case()) {
    case proto::Envelope::kDropTableRequest:
      return envelope.drop_table_request().name();
    case proto::Envelope::kSetContractRequest:
      return envelope.set_contract_request().name();
    case proto::Envelope::kDrainRequest:
      return envelope.drain_request().node();
    case proto::Envelope::kQuarantineRequest:
      return envelope.quarantine_request().producer();
    case proto::Envelope::kRestoreTablesRequest:
      return envelope.restore_tables_request().snapshot();
    case proto::Envelope::kScaleRequest:
    case proto::Envelope::kCreateSnapshotRequest:
    case proto::Envelope::kStartTraceRequest:
      return "";
    default:
      return std::nullopt;
  }
}

std::string WhoSent(const Message& request) {
  if (request.caller != nullptr) return Describe(*request.caller);
  const NodeId node = request.from().node;
  return node == NodeId() ? "somebody" : absl::StrCat("node ", node.value());
}

}  // namespace

bool AuditTrail::IsDue(absl::Time now, const AuditEntry& entry, uint64_t& repeated) {
  const std::pair<std::string, absl::string_view> key(entry.who, entry.call);
  auto found = refusals_.find(key);
  if (found == refusals_.end()) {
    if (refusals_.size() >= kCountedMax) {
      std::erase_if(refusals_, [now](const auto& each) { return each.second.next_entry <= now; });
    }
    if (refusals_.size() >= kCountedMax) return true;
    found = refusals_.emplace(key, Refusals{.next_entry = now}).first;
  }
  Refusals& refusals = found->second;
  if (now < refusals.next_entry) {
    ++refusals.since;
    return false;
  }
  repeated = std::exchange(refusals.since, 0);
  refusals.next_entry = now + kRefusalEvery;
  return true;
}

void AuditTrail::Add(absl::Time now, const ControlMethod& method, const Message& request,
                     const absl::Status& outcome) {
  if (!outcome.ok()) ++refused_;
  const std::optional<std::string> target = TargetOf(request.envelope);
  if (on_entry_ == nullptr || (outcome.ok() && !target.has_value())) return;
  AuditEntry entry{.who = WhoSent(request),
                   .call = method.rpc,
                   .target = target.value_or(""),
                   .outcome = outcome};
  if (outcome.ok() || IsDue(now, entry, entry.repeated)) on_entry_(entry);
}

}  // namespace covey::scheduler
