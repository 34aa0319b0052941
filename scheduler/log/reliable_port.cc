// SPDX-License-Identifier: Apache-2.0
#include "scheduler/log/reliable_port.h"

#include <algorithm>
#include <utility>

namespace covey::scheduler {
namespace {

// A full queue is emptied within one pass of its loop.
constexpr absl::Duration kOfferEvery = absl::Milliseconds(10);

}  // namespace

void ReliablePort::Send(Message message) {
  kept_.push_back(std::move(message));
  Offer();
}

void ReliablePort::Receive(absl::Time now, const Message& message, Outbox& outbox) {
  actor_.Receive(now, message, outbox);
}

void ReliablePort::Wake(absl::Time now, Outbox& outbox) {
  if (now >= offer_at_) Offer();
  if (now >= actor_.NextWake()) actor_.Wake(now, outbox);
}

absl::Time ReliablePort::NextWake() const { return std::min(offer_at_, actor_.NextWake()); }

void ReliablePort::Offer() {
  while (!kept_.empty() && to_.Deliver(kept_.front())) kept_.pop_front();
  offer_at_ = kept_.empty() ? absl::InfiniteFuture() : MonotonicNow() + kOfferEvery;
}

}  // namespace covey::scheduler
