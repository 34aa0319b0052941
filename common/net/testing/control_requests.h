// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/cluster/ids.h"
#include "common/net/message.h"

namespace covey {

// Requests to the scheduler, as a node's loop makes them.

inline constexpr Address kRequester = {NodeId(7), 2};

// A request without a body.
inline Message Request(uint64_t request_id) {
  Message message;
  message.set_to({kSchedulerNode, 0});
  message.envelope.set_from_loop(kRequester.loop);
  proto::Header& header = *message.envelope.mutable_header();
  header.set_node(kRequester.node.value());
  header.set_incarnation(5);
  header.set_request_id(request_id);
  return message;
}

// To see views newer than `known_epoch`.
inline Message WatchRequest(uint64_t request_id, uint64_t known_epoch) {
  Message message = Request(request_id);
  message.envelope.mutable_watch_view_request()->set_known_epoch(known_epoch);
  return message;
}

inline Message HeartbeatRequest(uint64_t request_id) {
  Message message = Request(request_id);
  message.envelope.mutable_heartbeat_request();
  return message;
}

}  // namespace covey
