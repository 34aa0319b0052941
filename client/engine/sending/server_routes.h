// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "common/cluster/ids.h"
#include "common/cluster/view.h"
#include "common/runtime/actor.h"

namespace covey::client {

// The endpoints of the server loops that this client sends to, as the loop's transport knows them.
// Actor-confined. Deterministic.
class ServerRoutes {
 public:
  // Call before a message to `server`: sets its route as in the view.
  void Ensure(const Address& server, const ClusterView& view, Outbox& outbox);
  // Routes follow the newest view. The connection to a dead server is closed, because messages that
  // wait in it keep the caller's memory.
  void FollowView(const ClusterView& view, Outbox& outbox);
  // Closes the connection and drops the frames that wait in it; the next send reopens it.
  void Close(const Address& server, Outbox& outbox);

 private:
  std::map<Address, std::string> endpoints_;
};

}  // namespace covey::client
