// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/log.pb.h"
#include "proto/scheduler.pb.h"

namespace covey::scheduler {

// What a WorkRequest says, and whether it can be. Used by DataDispatcher. Pure.

// It wants nothing, and tells nothing but perhaps a pass.
bool TellsNothing(const proto::WorkRequest& request);
// Nothing = it names none.
std::optional<uint64_t> PassOf(const proto::WorkRequest& request);
// The sender is past the last pass, or takes no more.
bool Leaves(const proto::WorkRequest& request);

// INVALID_ARGUMENT: the request is malformed, whatever the data set is.
absl::Status CheckAlone(const proto::WorkRequest& request);
// INVALID_ARGUMENT: it describes the data set differently from the record.
absl::Status CheckSameDescription(const proto::WorkRequest& request,
                                  const proto::WorkLedger& record);

// INVALID_ARGUMENT, for users; `name` is the data set's.
template <typename... Why>
absl::Status Refusal(const std::string& name, const Why&... why) {
  return absl::InvalidArgumentError(absl::StrCat("work '", name, "': ", why...));
}

}  // namespace covey::scheduler
