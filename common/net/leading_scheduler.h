// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace grpc {
class ClientContext;
class Status;
}  // namespace grpc

namespace covey {

// How to find the scheduler that leads among several; for whoever calls one over gRPC. Pure.

// In the trailing metadata of UNAVAILABLE from a scheduler that does not lead.
inline constexpr char kStandbyMetadata[] = "covey-standby";

// "host:port", or several: "host:port,host:port". Blanks around one do not count, and empty ones
// are left out; at least one, which may be empty: it fails as any wrong address does.
std::vector<std::string> SplitSchedulers(absl::string_view addresses);

// Whether a call's outcome, not OK, is the scheduler's own word, and not that nothing was heard.
bool IsByPeer(const grpc::Status& status, const grpc::ClientContext& context);

// Whether another scheduler may do better: this one is away, or says that it does not lead.
bool IsElsewhere(const grpc::Status& status, const grpc::ClientContext& context);

}  // namespace covey
