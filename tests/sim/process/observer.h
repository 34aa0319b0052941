// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/net/message.h"

namespace covey::sim {

// Sees every message between processes. An observer only looks: it must not change the history.
class Observer {
 public:
  virtual ~Observer() = default;
  // `message` has left an actor, with its header filled in; the network may still lose it.
  virtual void OnSend(absl::Time, const Message&) {}
  // `message` is about to be given to the actor of process `receiver`.
  virtual void OnReceive(absl::Time, absl::string_view /*receiver*/, const Message&) {}
  // The actor has received the message.
  virtual void OnReceived(absl::Time, absl::string_view /*receiver*/, const Message&) {}
  // The same for a message that a hostile process has forged (tests/sim/network/forgery.h); none of
  // the above sees it, nor an answer to it.
  virtual void OnForged(absl::Time, absl::string_view /*receiver*/, const Message&) {}
  virtual void OnForgedReceived(absl::Time, absl::string_view /*receiver*/, const Message&) {}
  // An actor has answered a forged message.
  virtual void OnAnswerToForger(absl::Time, const Message&) {}
  // What the actor sent has left it, and this many of the lent frames that came with the message
  // are still in use. `message` has no frames any more.
  virtual void OnFramesKept(absl::Time, absl::string_view /*receiver*/, const Message&,
                            size_t /*frames*/) {}
};

}  // namespace covey::sim
