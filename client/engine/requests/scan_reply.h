// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "client/engine/requests/shard_request.h"
#include "common/net/message.h"
#include "proto/view.pb.h"

namespace covey::client {

// The reply to a request whose operation scans a shard. Pure, but for the operation's memory.

// INTERNAL: the frames are not those that the reply names.
absl::Status CheckScanFrames(const ShardRequest& request, const Message& reply);

// Copies the piece to the operation's memory. INTERNAL: it does not begin where it was asked for,
// ends outside the shard, or is not in order, so that a reader that goes on behind it would miss
// rows. Preconditions: CheckScanFrames, and the frames have their checksums.
absl::Status TakeScannedRows(const ShardRequest& request, const Message& reply,
                             const proto::Shard& shard);

}  // namespace covey::client
