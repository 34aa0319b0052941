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

// How a gRPC client finds the leading scheduler among several. Pure.

// In the trailing metadata of UNAVAILABLE from a scheduler that does not lead.
inline constexpr char kStandbyMetadata[] = "covey-standby";

// "host:port", or several: "host:port,host:port". Blanks around an address are ignored, and empty
// addresses are left out. The result has at least one element, which may be empty and then fails
// like any wrong address.
std::vector<std::string> SplitSchedulers(absl::string_view addresses);

// Whether a failed call's status comes from the scheduler itself, rather than from the absence of a
// reply.
bool IsFromScheduler(const grpc::Status& status, const grpc::ClientContext& context);

// Whether another scheduler may succeed: this one cannot be reached, or says that it does not lead.
bool ShouldTryAnother(const grpc::Status& status, const grpc::ClientContext& context);

}  // namespace covey
