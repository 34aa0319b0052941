// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/checkers/death_evidence.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/sim/checkers/published_view.h"

namespace covey::sim {
namespace {

// Between two tries to connect (scheduler/nodes/prober.h).
constexpr absl::Duration kSilence = absl::Milliseconds(500);

}  // namespace

void DeathEvidence::OnReceive(absl::Time now, absl::string_view, const Message& message) {
  const proto::Envelope& envelope = message.envelope;
  if (envelope.has_heartbeat_request() && message.to().node == kSchedulerNode) {
    heard_[{message.from().node.value(), message.incarnation().value()}] = now;
  } else if (envelope.has_probe_reply() &&
             envelope.probe_reply().result() == proto::ProbeReply::REFUSED) {
    const Process process{envelope.probe_reply().node(), envelope.probe_reply().incarnation()};
    const auto heard = heard_.find(process);
    if (heard == heard_.end() || now - heard->second >= kSilence) refused_.insert(process);
  }
}

void DeathEvidence::OnSend(absl::Time, const Message& message) {
  const proto::ClusterView* const view = PublishedView(message);
  if (view == nullptr) return;
  for (const proto::Node& node : view->nodes()) {
    if (node.state() != proto::Node::DEAD ||
        !absl::StrContains(node.departure(), "refuses a connection") ||
        refused_.contains({node.id(), node.incarnation()})) {
      continue;
    }
    violations_.Add("death_evidence",
                    absl::StrCat(node.name(), " is ", node.departure(), ", and was heard within ",
                                 absl::FormatDuration(kSilence), " before"));
    refused_.insert({node.id(), node.incarnation()});  // Reported once.
  }
}

}  // namespace covey::sim
