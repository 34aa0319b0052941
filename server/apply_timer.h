// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/metrics/duration_histogram.h"
#include "common/net/message.h"
#include "common/runtime/actor.h"

namespace covey::server {

// The actor of a data loop, with the time that it takes for each push and each record of a chain:
// the actor checks and applies it, and makes what is sent. An actor itself has no clock.
//
// Belongs to the loop's thread. `actor` outlives it.
class ApplyTimer : public Actor {
 public:
  static constexpr absl::Duration kBounds[] = {absl::Microseconds(100), absl::Milliseconds(1),
                                               absl::Milliseconds(10), absl::Milliseconds(100)};

  explicit ApplyTimer(Actor& actor) : actor_(actor) {}

  void Receive(absl::Time now, const Message& message, Outbox& outbox) override {
    actor_.Receive(now, message, outbox);
    const proto::Envelope& envelope = message.envelope;
    if (!envelope.has_push_request() && !envelope.has_replicate_request()) return;
    times_.Record(MonotonicNow() - now);
  }
  void Wake(absl::Time now, Outbox& outbox) override { actor_.Wake(now, outbox); }
  absl::Time NextWake() const override { return actor_.NextWake(); }

  const DurationHistogram& times() const { return times_; }

 private:
  Actor& actor_;
  DurationHistogram times_{kBounds};
};

}  // namespace covey::server
