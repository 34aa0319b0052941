// SPDX-License-Identifier: Apache-2.0
#include "common/net/scheduler_failover.h"

#include <grpcpp/grpcpp.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace covey {

std::vector<std::string> SplitSchedulers(absl::string_view addresses) {
  std::vector<std::string> split;
  for (const absl::string_view address : absl::StrSplit(addresses, ',', absl::SkipWhitespace())) {
    split.emplace_back(absl::StripAsciiWhitespace(address));
  }
  if (split.empty()) split.emplace_back();
  return split;
}

bool IsFromScheduler(const grpc::Status& status, const grpc::ClientContext& context) {
  // The status alone does not tell which end gave up at the deadline.
  return absl::StrContains(context.debug_error_string(), "Error received from peer") &&
         status.error_message() != "Deadline Exceeded";
}

bool ShouldTryAnother(const grpc::Status& status, const grpc::ClientContext& context) {
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED)
    return !IsFromScheduler(status, context);
  if (status.error_code() != grpc::StatusCode::UNAVAILABLE) return false;
  return !IsFromScheduler(status, context) ||
         context.GetServerTrailingMetadata().count(kStandbyMetadata) > 0;
}

}  // namespace covey
