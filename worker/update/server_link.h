#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/engine/request_engine.h"
#include "common/cluster/ids.h"
#include "common/runtime/actor.h"
#include "common/tensor/wire_format.h"
#include "worker/group/group_machine.h"

namespace covey::worker {

// A group member's way to the servers: pushes whose producer is the group and whose sequence is a
// step, so that each shard takes one update per group and step, whichever member sends it.
//
// When a transfer fails, the group fails with its status, unless it has gone on in another generation
// since; when the group has failed, its transfers end.
//
// Actor-confined. Deterministic. Client and group outlive it.
class ServerLink {
 public:
  using Done = std::function<void(absl::Time, const absl::Status&, Outbox&)>;

  struct Transfer {
    TableId table;
    ShardIndex first_shard;
    uint32_t shard_count = 0;
    // Sum over `samples` examples; empty = no push.
    std::span<const float> sum;
    uint64_t samples = 1;
    // How the sum travels, and what its encoding loses: as in client::Operation.
    WireFormat format = WireFormat::kFloat32;
    std::span<float> residual;
    // Of the push; the answer must hold it. 0 = any values will do.
    Step step;
    std::span<float> values;
    absl::Time deadline = absl::InfiniteFuture();
    // Called once, always; may run inside Start.
    Done done;
  };

  ServerLink(client::RequestEngine& client, GroupMachine& group) : client_(client), group_(group) {}

  void Start(absl::Time now, Transfer transfer, Outbox& outbox);
  // Ends the group's transfers with the group's failure, if it has failed.
  void FollowFailure(absl::Time now, Outbox& outbox);

  // Mean, over the pushes since the last call, of updates by others between the values that a
  // gradient was computed on and its application. 0 when there were none.
  double TakeStaleness();

 private:
  client::RequestEngine& client_;
  GroupMachine& group_;
  uint64_t staleness_sum_ = 0;
  uint64_t staleness_count_ = 0;
};

}  // namespace covey::worker
