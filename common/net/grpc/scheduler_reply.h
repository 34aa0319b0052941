// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/net/message.h"

namespace grpc {
class ClientContext;
class Status;
}  // namespace grpc

namespace covey {

// How the outcome of a gRPC call becomes a reply message. Pure.

// A reply to `request` without a body, as if the scheduler had sent it through a transport.
Message MakeSchedulerReply(const Message& request);

// The status for the reply: the scheduler's own, if the call's status comes from there; otherwise
// one that says that the scheduler at `addresses` does not answer.
absl::Status OutcomeOf(const grpc::Status& status, const grpc::ClientContext& context,
                       absl::string_view addresses);

}  // namespace covey
