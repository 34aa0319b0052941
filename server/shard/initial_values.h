// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/cluster/view.h"
#include "common/net/message.h"
#include "server/replication/shard_record.h"
#include "server/shard/served_shard.h"

namespace covey::server {

// A table whose initializer is GIVEN waits for its initial values: the scheduler names one node
// that gives them, under an epoch (proto: Initialization), and ends the wait when that node says
// that all shards hold them. Until then the shards take pushes of that node and epoch only, and no
// pull. So no reader sees values of two nodes, or none, and no update is made before.

// Whether the push gives initial values.
bool GivesInitialValues(const Message& request);

// Whether a push or pull may be served while its table is, or is not, being initialized.
// UNAVAILABLE: the table waits for its initial values, or this view is older than the sender's.
// ABORTED: the push gives initial values, and another node or epoch counts now, or the table has
// its values.
absl::Status CheckInitialization(const Message& request, const ClusterView& view,
                                 const proto::Table& table);

// The record with the initial values that the push holds. UNAVAILABLE: it holds none (it is a
// query), or they did not arrive as they were sent. ABORTED: updates were applied.
// INVALID_ARGUMENT: they do not fit the shard, are not of float32, or are not all finite; names the
// element.
absl::StatusOr<ShardRecord> InitialValuesIn(const Message& request, const ServedShard& shard);

}  // namespace covey::server
