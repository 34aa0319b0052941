// SPDX-License-Identifier: Apache-2.0
#include "client/engine/sending/server_routes.h"

#include <iterator>

namespace covey::client {

void ServerRoutes::Ensure(const Address& server, const ClusterView& view, Outbox& outbox) {
  const std::string endpoint = view.EndpointOf(server);
  std::string& known = endpoints_[server];
  if (known == endpoint) return;
  known = endpoint;
  outbox.Route(server, endpoint);
}

void ServerRoutes::FollowView(const ClusterView& view, Outbox& outbox) {
  for (auto route = endpoints_.begin(); route != endpoints_.end();) {
    auto& [server, endpoint] = *route;
    const bool gone = !view.IsAlive(server.node);
    const std::string newest = gone ? "" : view.EndpointOf(server);
    if (newest != endpoint) {
      endpoint = newest;
      outbox.Route(server, newest);
    }
    route = gone ? endpoints_.erase(route) : std::next(route);
  }
}

void ServerRoutes::Close(const Address& server, Outbox& outbox) {
  if (endpoints_.erase(server) > 0) outbox.Route(server, "");
}

}  // namespace covey::client
