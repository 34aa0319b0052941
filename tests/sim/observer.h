// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/net/message.h"

namespace covey::sim {

// Sees everything that passes between processes. It only looks: what it does must not change the
// history.
class Observer {
 public:
  virtual ~Observer() = default;
  // `message` has left an actor, its header is filled in; the network may still lose it.
  virtual void OnSend(absl::Time, const Message&) {}
  // `message` is about to be given to the actor of process `receiver`.
  virtual void OnReceive(absl::Time, absl::string_view /*receiver*/, const Message&) {}
  // The actor has received it.
  virtual void OnReceived(absl::Time, absl::string_view /*receiver*/, const Message&) {}
};

}  // namespace covey::sim
