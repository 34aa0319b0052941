#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "absl/functional/function_ref.h"
#include "common/net/message.h"
#include "common/runtime/actor.h"

namespace covey::worker {

// Messages of several collectives to one peer, in order, at most so many at once that the transport
// drops none; and when it has let go of each frame, which then is its owner's again.
//
// Limits: kGroupBytesInFlightMax and kGroupSlicesInFlightMax in the transport; the rest waits here.
// Actor-confined. Deterministic.
class SliceSender {
 public:
  // The collective that a message was queued for.
  using Released = absl::FunctionRef<void(uint64_t collective)>;

  // `message` has one frame or none.
  void Queue(uint64_t collective, Message message);
  // Sends what may be sent; `released` runs once for each message that the transport no longer
  // holds.
  void Advance(Outbox& outbox, Released released);
  // Forgets what was not sent; `released` runs for each.
  void CancelQueued(Released released);

  // Whether the transport may still hold frames. Nobody tells when it lets go: look again.
  bool in_flight() const { return !in_flight_.empty(); }

 private:
  struct Slice {
    uint64_t collective = 0;
    Message message;  // in flight: only its frames
  };

  void TakeBack(Released released);

  std::deque<Slice> queued_;
  std::deque<Slice> in_flight_;
  size_t bytes_in_flight_ = 0;
};

}  // namespace covey::worker
