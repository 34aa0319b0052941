// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "client/engine/requests/shard_request.h"
#include "common/cluster/ids.h"

namespace covey::client {

// Keeps the pushes of one producer to one shard, from their start until they have ended, within the
// sequences that the shard remembers (limits.h, kDedupWindow). A push may be lost on its way, and
// its repeat comes a second later or more: if the shard had received so many newer ones meanwhile,
// it could not tell whether the repeat is a duplicate, and would have to refuse it for good.
//
// Invariant: no push leaves before HasRoomFor, so a push in flight, or received and not durable,
// has fewer than kDedupWindow sequences between itself and the newest that has ever left.
//
// Actor-confined. Pure.
class PushWindow {
 public:
  // Each push that has begun ends once.
  void Begin(const ShardRequest& push);
  void End(const ShardRequest& push);
  // Precondition: the push has begun and has not ended.
  bool HasRoomFor(const ShardRequest& push) const;

 private:
  // The shard, and the group that pushes; none = this client.
  using Stream = std::pair<ShardId, GroupId>;

  // The sequences of pushes that have not ended. A group may push a step again.
  std::map<Stream, std::multiset<uint64_t>> unfinished_;
};

}  // namespace covey::client
