// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/net/message.h"

namespace covey {

// All effects of an actor during one call. Actor-confined.
class Outbox {
 public:
  // Lost, late or delivered once, as Transport promises. The loop fills in job, sender and
  // incarnation.
  void Send(Message message) { messages_.push_back(std::move(message)); }
  // Messages to `peer` go to `endpoint`; an empty endpoint closes the connection.
  void Route(const Address& peer, std::string endpoint) {
    routes_.emplace_back(peer, std::move(endpoint));
  }

  std::vector<Message> TakeMessages() { return std::exchange(messages_, {}); }
  std::vector<std::pair<Address, std::string>> TakeRoutes() { return std::exchange(routes_, {}); }

 private:
  std::vector<Message> messages_;
  std::vector<std::pair<Address, std::string>> routes_;
};

// Role logic without sockets, threads, clocks or files: the same code runs under the real event
// loop and under the simulator. Deterministic: the effect of a call depends only on state, `now`
// and `message`.
//
// `now` is monotonic; its zero has no meaning. A call never blocks. A message may be a duplicate,
// out of date, or from a stranger; an actor refuses it and never trusts it. The memory of its
// frames may be lent by the sender until the call returns and its effects have been carried out: an
// actor that keeps a frame for longer keeps Buffer::Kept() of it.
class Actor {
 public:
  virtual ~Actor() = default;
  virtual void Receive(absl::Time now, const Message& message, Outbox& outbox) = 0;
  // Called when now >= NextWake(), and once at the start.
  virtual void Wake(absl::Time now, Outbox& outbox) = 0;
  // InfiniteFuture() when nothing is pending.
  virtual absl::Time NextWake() const = 0;
};

}  // namespace covey
