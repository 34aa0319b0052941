// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/work/recall_wait.h"

namespace covey::sim {
namespace {

constexpr absl::Duration kPatience = absl::Hours(24);
// After an error.
constexpr absl::Duration kLookAgain = absl::Milliseconds(100);

}  // namespace

void RecallWait::Send(absl::Time now, proto::WorkRequest request, client::ClientActor& client,
                      Outbox& outbox) {
  if (under_way_ || now < again_) return;
  under_way_ = true;
  proto::Envelope envelope;
  *envelope.mutable_work_request() = std::move(request);
  client.control().Start(
      now, std::move(envelope), now + kPatience,
      [this](absl::Time at, const absl::Status& status, const proto::Envelope* reply, Outbox&) {
        under_way_ = false;
        again_ = at + kLookAgain;
        if (!status.ok()) return;
        const proto::WorkReply& body = reply->work_reply();
        again_ =
            body.done() ? absl::InfiniteFuture() : at + absl::Milliseconds(body.ask_again_ms());
        is_recalled_ = is_recalled_ || body.return_untrained();
      },
      outbox);
}

}  // namespace covey::sim
