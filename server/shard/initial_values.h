// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/cluster/view.h"
#include "common/net/message.h"
#include "common/runtime/actor.h"
#include "server/replication/shard_record.h"
#include "server/shard/served_shard.h"

namespace covey::server {

// A table whose initializer is GIVEN waits for its initial values: the scheduler names one node
// that gives them, under an epoch (proto: Initialization), and ends the wait when that node says
// that all shards hold them. Until then the shards take pushes of that node and epoch only, and no
// pull. So no reader sees values of two nodes, or none, and no update is made before. The values
// may come with the state of the table's optimizer (PushRequest.initial_state).

// Whether the push gives initial values.
bool GivesInitialValues(const Message& request);

// Whether a push or pull may be served while its table is, or is not, being initialized.
// UNAVAILABLE: the table waits for its initial values, or this view is older than the sender's.
// ABORTED: the push gives initial values, and another node gives them, or the same under another
// epoch, or the table has its values.
absl::Status CheckInitialization(const Message& request, const ClusterView& view,
                                 const proto::Table& table);

// The initial values that the head of a chain has taken. Lost with the head: the next one takes
// them again, and those of one epoch are equal. Actor-confined.
class InitialValues {
 public:
  // Appends the record with the values that the push holds, and the state. Those of an epoch are
  // taken once: afterwards OK, and nothing is done. Precondition: the push has passed
  // CheckInitialization. UNAVAILABLE: it holds none (it is a query), or they did not arrive as they
  // were sent. ABORTED: updates were applied. RESOURCE_EXHAUSTED: the replicas are behind.
  // INVALID_ARGUMENT: they do not fit the shard or its optimizer, are not of float32, or are not
  // all finite; names the element.
  absl::Status Take(absl::Time now, const Message& request, ServedShard& shard, Outbox& outbox);

  // The epoch whose values the shard holds; Epoch() = this head has taken none.
  Epoch taken() const { return taken_; }

 private:
  static absl::StatusOr<ShardRecord> RecordOf(const Message& request, const ServedShard& shard);

  Epoch taken_;
};

}  // namespace covey::server
