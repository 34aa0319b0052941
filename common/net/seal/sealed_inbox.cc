// SPDX-License-Identifier: Apache-2.0
#include "common/net/seal/sealed_inbox.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace covey {

SealedInbox::SealedInbox(const Options& options, const Counters& counters, RefusalLog& refusals)
    : keys_(options.keys),
      counters_(counters),
      refusals_(refusals),
      opener_(options.keys, options.loop, options.limits) {}

std::optional<Message> SealedInbox::Receive(absl::Time now, SealedMessage sealed) {
  const absl::StatusOr<SealedHead> head = opener_.ReadHead(sealed);
  if (!head.ok()) {
    Refuse(now, head.status());
    return std::nullopt;
  }
  return Open(now, {.head = *head, .sealed = std::move(sealed), .until = now + kHeldFor});
}

std::optional<Message> SealedInbox::NextHeld(absl::Time now) {
  if (!holds_any()) return std::nullopt;
  while (!held_.empty() && held_.front().until <= now) {
    held_bytes_ -= held_.front().sealed.bytes();
    held_.pop_front();
    ++counters_.dropped;
  }
  const uint64_t changes = keys_->changes();
  if (changes != changes_) {
    changes_ = changes;
    std::move(held_.begin(), held_.end(), std::back_inserter(due_));
    held_.clear();
  }
  while (!due_.empty()) {
    Held next = std::move(due_.front());
    due_.pop_front();
    held_bytes_ -= next.sealed.bytes();
    if (std::optional<Message> message = Open(now, std::move(next))) return message;
  }
  return std::nullopt;
}

std::optional<Message> SealedInbox::Open(absl::Time now, Held message) {
  // Its sender's key may have become known a moment ago; earlier messages come first.
  if (HoldsAnyOf(message.head.sender.node)) {
    Hold(now, std::move(message));
    return std::nullopt;
  }
  absl::StatusOr<Message> opened = opener_.Open(message.head, message.sealed);
  if (opened.ok()) return *std::move(opened);
  if (absl::IsUnavailable(opened.status())) {
    Hold(now, std::move(message));
  } else if (absl::IsAborted(opened.status())) {
    ++counters_.dropped;
  } else {
    Refuse(now, opened.status());
  }
  return std::nullopt;
}

void SealedInbox::Hold(absl::Time now, Held message) {
  const size_t bytes = message.sealed.bytes();
  if (message.until <= now || held_.size() + due_.size() >= kHeldMessagesMax ||
      bytes > kHeldBytesMax - held_bytes_) {
    ++counters_.dropped;
    return;
  }
  held_bytes_ += bytes;
  held_.push_back(std::move(message));
}

bool SealedInbox::HoldsAnyOf(NodeId sender) const {
  return std::any_of(held_.begin(), held_.end(),
                     [&](const Held& held) { return held.head.sender.node == sender; });
}

void SealedInbox::Refuse(absl::Time now, const absl::Status& why) {
  counters_.refused.Add(RefusalOf(why));
  refusals_.Add(now, why.message());
}

}  // namespace covey
