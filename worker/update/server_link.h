// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/engine/operation.h"
#include "client/engine/request_engine.h"
#include "common/base/buffer.h"
#include "common/cluster/ids.h"
#include "common/runtime/actor.h"
#include "worker/group/communicator.h"

namespace covey::worker {

// The operations of a group member on the servers. Pushes carry the group as their producer and a
// step as their sequence, so that each shard takes one update per group and step, whichever member
// sends it.
//
// When an operation fails, the group fails with its status, unless it has moved on to another round
// in the meantime. When the group has failed, its operations end.
//
// Actor-confined. Deterministic. Client and group outlive it.
class ServerLink {
 public:
  using Done = std::function<void(absl::Time, const absl::Status&, Outbox&)>;

  ServerLink(client::RequestEngine& client, Communicator& group) : client_(client), group_(group) {}

  // Starts an operation for the group. `step`: the number of a push; the values in the reply must
  // include that step of the group, 0 = any values will do. The link fills in the operation's
  // `group`, `read` and `done`. Always calls `done` once; it may run inside Start.
  void Start(absl::Time now, client::Operation operation, Step step, Done done, Outbox& outbox);
  // The caller writes to this memory next: as RequestEngine::ReleaseGradient.
  void ReleaseGradient(const Buffer& memory) { client_.ReleaseGradient(memory); }
  // Ends the group's operations with the group's failure, if it has failed.
  void FollowFailure(absl::Time now, Outbox& outbox);

  // The mean, over the pushes since the last call, of the updates by others between the values that
  // a gradient was computed on and its application. 0 when there were none.
  double TakeStaleness();

 private:
  client::RequestEngine& client_;
  Communicator& group_;
  uint64_t staleness_sum_ = 0;
  uint64_t staleness_count_ = 0;
};

}  // namespace covey::worker
