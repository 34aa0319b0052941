// SPDX-License-Identifier: Apache-2.0
#include "scheduler/log/standby.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/net/own_process.h"

namespace covey::scheduler {

void Standby::Receive(absl::Time now, const Message& message, Outbox& outbox) {
  if (leader_ != nullptr) return leader_->Receive(now, message, outbox);
  if (IsFromOwnProcess(message)) return;  // it waits for no reply
  Message reply = MakeReply(message);
  SetStatus(absl::UnavailableError(absl::StrCat("this scheduler stands by: ", reason_)), reply);
  outbox.Send(std::move(reply));
}

void Standby::Wake(absl::Time now, Outbox& outbox) {
  const std::vector<Message> pending = std::exchange(pending_, {});
  if (leader_ == nullptr) return;
  for (const Message& message : pending) leader_->Receive(now, message, outbox);
  if (pending.empty() || leader_->NextWake() <= now) leader_->Wake(now, outbox);
}

absl::Time Standby::NextWake() const {
  if (!pending_.empty()) return absl::InfinitePast();
  return leader_ == nullptr ? absl::InfiniteFuture() : leader_->NextWake();
}

}  // namespace covey::scheduler
