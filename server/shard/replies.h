// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "common/net/message.h"

namespace covey::server {

// Replies to pushes and pulls, and what they look like when they refuse. Pure.

// The begun reply to a push or a pull: addressed, naming the push or the shard.
Message BeginReply(const Message& request);

// Turns a begun or complete reply into a refusal: nothing but the name of the push or the shard and
// the status stay, with advice when to retry if too much waits.
void MakeRefusal(const absl::Status& why, Message& reply);

}  // namespace covey::server
