// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/net/message.h"

namespace covey::scheduler {

// Which node is to return examples of one data set that it has not begun to train. At the end of a
// pass a slow node would otherwise train what waits in its queue while all others have nothing.
//
//   holder ── a request that waits (a long poll) ──▶ waits ── Recall ──▶ is told to return
//   idle node ── asks in vain, and holds no example ────────────┘
//
// An idle node recalls from one holder at a time: the one that was given its newest examples first,
// if that was longer ago than the idle node's own newest examples have lasted. A holder as fast as
// the idle node has begun what it was given by then. So nodes of equal speed do not take turns with
// the last examples, and each holder has the time to begin some of what it is given.
//
// Only a node that waits here is recalled from. Programs of release 0.1.0 do not: they keep what
// they hold.
//
// Used by DataDispatcher. Actor-confined, deterministic.
class Recalls {
 public:
  // How long a request waits at most. Short enough for the sender not to repeat it.
  static constexpr absl::Duration kWaitMax = absl::Seconds(3);
  // How long the examples of a node last that was never given any.
  static constexpr absl::Duration kUnknownTurn = absl::Seconds(1);

  // The node was given examples.
  void NoteGiven(absl::Time now, NodeId node);
  // The node has returned examples. Whether it was told to, since it last did.
  bool NoteReturned(NodeId node);

  // `request` waits, a repeated one as the first. Returns another request of the node that waited
  // until now.
  std::optional<Message> Wait(absl::Time now, const Message& request);
  // The request of the node that waits; null = none does.
  const Message* WaitOf(NodeId node) const;
  // The sender of `request` holds no examples of its pass, and none are left to give. Returns the
  // request of the node that is to return some; it waits no longer.
  std::optional<Message> Recall(absl::Time now, const Message& request);
  // The node waits no longer. Returns its request.
  std::optional<Message> EndWait(NodeId node);
  // The node is no longer ALIVE. Returns its request.
  std::optional<Message> Forget(NodeId node);

  // Requests that have waited for kWaitMax; they wait no longer.
  std::vector<Message> TakeExpired(absl::Time now);
  // When to call TakeExpired; may be too early.
  absl::Time NextExpiry() const {
    return deadlines_.empty() ? absl::InfiniteFuture() : deadlines_.front().at;
  }

 private:
  struct Turn {
    // When the node was given its newest examples; and how long it was from then until it held none
    // and asked in vain.
    absl::Time given;
    std::optional<absl::Duration> lasted;
    bool is_recalled = false;
  };
  // Of a request that waits, or has waited; in the order of time.
  struct Deadline {
    absl::Time at;
    NodeId node;
    uint64_t request_id = 0;
  };

  std::map<NodeId, Turn> turns_;
  std::map<NodeId, Message> waits_;
  std::deque<Deadline> deadlines_;
};

}  // namespace covey::scheduler
