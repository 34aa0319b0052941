// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "common/net/message.h"

namespace covey::server {

// Replies to pushes and pulls, and their form as refusals. Pure.

// A new reply to a push or a pull: it has an address, and names the push or the shard.
Message BeginReply(const Message& request);

// Turns a begun or complete reply into a refusal: only the name of the push or the shard, whether
// its keys are unknown, and the status remain, with the time for a retry if too many bytes wait.
void MakeRefusal(const absl::Status& why, Message& reply);

}  // namespace covey::server
