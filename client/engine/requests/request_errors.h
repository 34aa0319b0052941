// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "client/engine/requests/shard_request.h"
#include "common/cluster/ids.h"
#include "common/cluster/view.h"

namespace covey::client {

// The errors of requests that a user of the client may see: the operation, its shard, the server
// that it waits for, and the remedy. Pure.

// "table=weights shard=3".
std::string NameOf(const ClusterView& view, ShardId shard);

// Of operations. DEADLINE_EXCEEDED: no reply in time.
absl::Status NoReplyError(const ClusterView& view, const ShardRequest& request);
// FAILED_PRECONDITION: a push was applied without these rows, because the table is full and has no
// policy for that.
absl::Status RowsRefusedError(const std::string& table, uint64_t rows);
// NOT_FOUND: the table is gone.
absl::Status TableDroppedError(const ClusterView& view, ShardId shard);

// Of flushes. DEADLINE_EXCEEDED: an unanswered push, and one that was received (`count` in all).
absl::Status UnansweredPushError(const ClusterView& view, const ShardRequest& push);
absl::Status NotDurableError(const ClusterView& view, const ShardRequest& push, size_t count);

// Of pushes that had been received.
// DATA_LOSS: all replicas of the shard are lost.
absl::Status ContentLostError(const ClusterView& view, const ShardRequest& push);
// DATA_LOSS: the head does not accept the push. ABORTED: it may have been applied, because a node
// that was declared dead learns nothing more.
absl::Status RefusedForGoodError(const ClusterView& view, const ShardRequest& push,
                                 const absl::Status& refusal);
// With the code of `why`: the client stops before it learns whether the push became durable.
absl::Status UnknownDurabilityError(const ClusterView& view, const ShardRequest& push,
                                    const absl::Status& why);

}  // namespace covey::client
