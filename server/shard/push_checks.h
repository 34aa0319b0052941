// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/buffer.h"
#include "common/cluster/view.h"
#include "common/net/message.h"
#include "server/replication/push_history.h"
#include "server/replication/shard_content.h"

namespace covey::server {

// Checks of a push before a shard accepts it. Messages name the sender, the fault, the place and
// the remedy. Pure.

// "group 3", "worker-1".
std::string NameOf(const Producer& producer, const ClusterView& view);
// Whether no push of this producer can be admitted any more.
bool IsGone(const Producer& producer, const ClusterView& view);

// A push without the frame of its gradient is a query whether the push was received; it is answered
// like a duplicate. Of a sparse table, it may have the keys of the rows that it asks for, and a
// push without keys has no frames, and is none. Nor is a push of functions: a repeat has them, too.
// Keys that are only named have no frame.
bool IsQuery(const Message& request);

// Whether the request is well-formed: `frames` frames of the size that the format needs, those of
// rows, or none; a valid number of samples, or functions alone; an identity that fits its sender.
// No correct peer sends a request that fails here. INVALID_ARGUMENT: says what is wrong.
struct PushForm {
  GradientShape shape;
  uint64_t samples_so_far = 0;
  size_t frames = 1;
};
absl::Status CheckForm(const Message& request, const PushForm& form);

// Whether the sender is part of the cluster. UNAVAILABLE: it is not in this view, but perhaps in
// the newer view that it knows. INVALID_ARGUMENT: it is unknown. ABORTED: it has departed, or has
// another generation. PERMISSION_DENIED: it pushes for a group, and is no worker.
absl::Status CheckSender(const Message& request, const ClusterView& view);
// Whether the sender of a pull is or was a node of the job. Errors as the first two of CheckSender.
absl::Status CheckReader(const Message& request, const ClusterView& view);

// INVALID_ARGUMENT: an element is NaN or infinite; names it, and its place in the table.
absl::Status CheckFinite(const Gradient& gradient, const ShardContent& content,
                         const proto::PushRequest& push, const ClusterView& view);

}  // namespace covey::server
