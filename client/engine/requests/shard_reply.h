// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "client/counters.h"
#include "client/engine/requests/shard_request.h"
#include "common/cluster/view.h"
#include "common/net/message.h"
#include "proto/parameter.pb.h"

namespace covey::client {

// The meaning of a reply for the request that it answers. The request has an owner.
struct Verdict {
  enum class Kind : uint8_t {
    kAccepted,     // the request has everything it asked for
    kRefused,      // not now: retry, a push with its bytes
    kValuesUnfit,  // a push is received, but its values are missing, damaged or too old: ask again
    kFailed,       // a retry cannot mend it
  };
  Kind kind = Kind::kAccepted;
  absl::Status why;
};

// Copies the values of the reply, if it has the right ones, to the operation's memory; the bytes
// there are undefined when they are damaged. Counts damaged and outdated replies.
Verdict TakeReply(const ShardRequest& request, const Message& reply, const ClusterView& view,
                  Counters& counters);

// The state of the shard that the reply shows.
const proto::ShardState& StateOf(const Message& reply);

// Precondition: accepted. Adds the reply to the operation's result.
void CountReply(const ShardRequest& request, const Message& reply);

}  // namespace covey::client
