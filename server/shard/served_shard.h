// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/buffer_pool.h"
#include "common/cluster/ids.h"
#include "common/cluster/view.h"
#include "server/key_lists/key_lists.h"
#include "server/replication/replica.h"
#include "server/replication/shard_counters.h"
#include "server/shard/ack_ledger.h"
#include "server/shard/queue_budget.h"
#include "server/shard/staleness_correction.h"

namespace covey::server {

// What the parts of a Shard share: what is served, and as whom. Shard owns and changes it.
// Actor-confined.
struct ServedShard {
  const ShardContent& content() const { return *replica.content(); }
  Version version() const { return content().version(); }
  // "table=weights shard=3", for errors.
  std::string Where() const {
    return absl::StrCat("table=", table_name, " shard=", id.index.value());
  }

  // Constant after construction.
  const ShardId id;
  const std::string table_name;
  ShardCounters& counters;
  BufferPool& spares;
  const QueueBudget& budget;  // of the loop
  KeyLists& key_lists;

  Replica& replica;
  std::shared_ptr<const ClusterView> view;
  std::vector<LiveGroup> waited_for;  // of the view, as the contract counts
  AckLedger ledger;
  StalenessCorrection correction;
};

// RESOURCE_EXHAUSTED: the next replica has to acknowledge records before another one is appended.
inline absl::Status CheckReplicasHaveRoom(const ServedShard& shard) {
  if (!shard.replica.IsFull()) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(shard.replica.SuccessorName(), " has not acknowledged ",
                   shard.replica.kept_bytes(), " bytes of updates yet; retry later"));
}

}  // namespace covey::server
