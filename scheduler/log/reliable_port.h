// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>

#include "absl/time/time.h"
#include "common/net/transport.h"
#include "common/runtime/actor.h"
#include "common/runtime/event_loop.h"

namespace covey::scheduler {

// A port to another loop that loses no message when that loop's queue is full: it holds refused
// messages, in order, and offers them again until the loop takes them. It wraps the actor that
// sends them, to be woken with it. For few messages, since nothing bounds how many are held.
//
// Belongs to the thread of the actor's own loop. `to` outlives it.
class ReliablePort : public Actor, public MessagePort {
 public:
  ReliablePort(Actor& actor, EventLoop& to) : actor_(actor), to_(to) {}

  void Send(Message message) override;
  void Receive(absl::Time now, const Message& message, Outbox& outbox) override;
  void Wake(absl::Time now, Outbox& outbox) override;
  absl::Time NextWake() const override;

 private:
  void Offer();

  Actor& actor_;
  EventLoop& to_;
  std::deque<Message> kept_;
  absl::Time offer_at_ = absl::InfiniteFuture();
};

}  // namespace covey::scheduler
