// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/cluster/ids.h"
#include "common/net/message.h"
#include "common/runtime/actor.h"

namespace covey::worker {

// Messages of several collectives to the other members: per member the most urgent first, at most
// so many at once that the transport drops none and an urgent one is soon on its way; and when the
// transport has let go of each frame, which then is its owner's again.
//
// Those of one collective to one member keep their order. Limits: kGroupBytesInFlightPerPeer,
// kGroupBytesInFlightMax and kGroupSlicesInFlightMax in the transport; the rest waits here.
// Actor-confined. Deterministic.
class SliceSender {
 public:
  struct Item {
    uint64_t collective = 0;  // the caller's name for it
    NodeId peer;              // whom `message` is addressed to
    int priority = 0;         // smaller is sooner
    Message message;          // one frame, which nobody else refers to, or none
  };
  // The collective that a message was queued for.
  using Released = absl::FunctionRef<void(uint64_t collective)>;

  void Queue(Item item);
  // Sends what may be sent, and returns whether there was any. `released` runs once for each
  // message that the transport no longer holds.
  bool Advance(Outbox& outbox, Released released);
  // Forgets what was not sent; `released` runs for each.
  void CancelQueued(Released released);
  // The same for one collective.
  void CancelQueued(uint64_t collective, Released released);

  // Messages sent to the peer since ForgetCounts.
  uint64_t sent_to(NodeId peer) const;
  void ForgetCounts() { sent_to_.clear(); }

  // Whether the transport may still hold frames. It does not notify when it releases
  // them, so the caller polls.
  bool in_flight() const { return slices_in_flight_ > 0; }
  // Those that have frames in the transport, in growing order.
  std::vector<NodeId> peers_in_flight() const;

 private:
  // Most urgent first; then in the order of queueing.
  using Turn = std::pair<int, uint64_t>;
  struct Sent {
    uint64_t collective = 0;
    Buffer frame;
  };
  struct Peer {
    std::map<Turn, Item> queued;
    std::vector<Sent> sent;  // not let go
    size_t bytes = 0;        // of these
  };

  bool MaySend(const Peer& peer) const;
  void Send(Peer& peer, Outbox& outbox);
  void TakeBack(Released released);

  std::map<NodeId, Peer> peers_;  // those with anything queued or in flight
  std::map<NodeId, uint64_t> sent_to_;
  uint64_t last_queued_ = 0;
  size_t slices_in_flight_ = 0;
  size_t bytes_in_flight_ = 0;
};

}  // namespace covey::worker
