#pragma once

#include <deque>

#include "absl/time/time.h"
#include "common/net/transport.h"
#include "common/runtime/actor.h"
#include "common/runtime/event_loop.h"

namespace covey::scheduler {

// Stands before an actor whose messages to another loop must not be lost when that loop's queue is
// full: as the port to it, keeps what it refuses, in order, and offers it again until it is taken.
// For messages that are few, since nothing bounds what is kept.
//
// Belongs to the thread of the actor's own loop. `to` outlives it.
class SureDelivery : public Actor, public MessagePort {
 public:
  SureDelivery(Actor& actor, EventLoop& to) : actor_(actor), to_(to) {}

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
