// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "common/cluster/ids.h"
#include "common/cluster/view.h"
#include "common/net/message.h"
#include "proto/replication.pb.h"

namespace covey::server {

// How a data loop refuses requests. Pure.

// A push or a pull, with the shard and generation that it names.
struct MisdirectedRequest {
  const Message& request;
  ShardId id;
  uint64_t generation = 0;
};
// UNAVAILABLE: the sender's view is newer. NOT_FOUND: there is no such table or shard.
// FAILED_PRECONDITION: the shard is on another server, or has another generation.
absl::Status WhyNotHere(const MisdirectedRequest& misdirected, const ClusterView& view,
                        const Address& self);

// The reply to a message along a chain of which `self` is not, or no longer, a part: ABORTED, with
// the newer chain epoch. Nothing when the sender may know more, or the message is a reply itself.
std::optional<Message> RefusalToStranger(const Message& message, const proto::ChainPosition& chain,
                                         const ClusterView& view, const Address& self);

}  // namespace covey::server
