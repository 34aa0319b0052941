// SPDX-License-Identifier: Apache-2.0
#include "client/engine/control_requests.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/net/message.h"

namespace covey::client {
namespace {

// A barrier's reply may take as long as its deadline, so an unanswered request is retried rarely; a
// refused one soon.
constexpr absl::Duration kRepeatAfter = absl::Seconds(5);
constexpr absl::Duration kRefusedRepeatAfter = absl::Milliseconds(100);

}  // namespace

void ControlRequests::Start(absl::Time now, proto::Envelope request, absl::Time deadline, Done done,
                            Outbox& outbox) {
  const uint64_t id = next_request_id_++;
  request.mutable_header()->set_request_id(id);
  request.set_to_node(kSchedulerNode.value());
  request.set_to_loop(0);
  const ControlMethod* const method = FindControlMethod(request);
  COVEY_CHECK(method != nullptr);
  Pending& pending = pending_[id];
  pending = {.method = method,
             .request = std::move(request),
             .deadline = deadline,
             .again = now,
             .last_refusal = {},
             .done = std::move(done)};
  Send(now, pending, outbox);
}

void ControlRequests::Send(absl::Time now, Pending& pending, Outbox& outbox) {
  pending.again = now + kRepeatAfter;
  Message message;
  message.envelope = pending.request;
  outbox.Send(std::move(message));
}

bool ControlRequests::Awaits(const Message& message) const {
  const auto found = pending_.find(message.envelope.header().request_id());
  return found != pending_.end() && message.envelope.body_case() == found->second.method->reply;
}

bool ControlRequests::Receive(absl::Time now, const Message& message, Outbox& outbox) {
  if (!Awaits(message)) return false;
  const auto found = pending_.find(message.envelope.header().request_id());
  const absl::Status status = StatusOf(message);
  if (status.code() == absl::StatusCode::kUnavailable) {
    found->second.last_refusal = status;
    found->second.again = now + kRefusedRepeatAfter;
    return true;
  }
  const Done done = std::move(found->second.done);
  pending_.erase(found);
  done(now, status, status.ok() ? &message.envelope : nullptr, outbox);
  return true;
}

void ControlRequests::Wake(absl::Time now, Outbox& outbox) {
  std::vector<std::pair<Done, absl::Status>> over;
  for (auto it = pending_.begin(); it != pending_.end();) {
    Pending& pending = it->second;
    if (now >= pending.deadline) {
      const absl::Status why = pending.last_refusal;
      over.emplace_back(
          std::move(pending.done),
          why.ok() ? absl::DeadlineExceededError(absl::StrCat(
                         BodyName(pending.request),
                         ": no answer from the scheduler before the deadline; see `covey status`"))
                   : why);
      it = pending_.erase(it);
      continue;
    }
    if (now >= pending.again) Send(now, pending, outbox);
    ++it;
  }
  for (auto& [done, status] : over) done(now, status, nullptr, outbox);
}

absl::Time ControlRequests::NextWake() const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [id, pending] : pending_)
    next = std::min({next, pending.again, pending.deadline});
  return next;
}

void ControlRequests::FailAll(absl::Time now, const absl::Status& status, Outbox& outbox) {
  for (auto& [id, pending] : std::exchange(pending_, {}))
    pending.done(now, status, nullptr, outbox);
}

}  // namespace covey::client
